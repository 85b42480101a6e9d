"""The parts of the Polars expression plugin: its library, its calls, and what finishes its samples."""
