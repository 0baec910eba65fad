"""What every folder may use: threads, checks of settings, progress, files, text."""
