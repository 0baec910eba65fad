"""The experiments of the papers, as data, and the engine that runs them."""
