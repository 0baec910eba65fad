"""What is learned from, and what comes out: training sets and models as plain data."""
