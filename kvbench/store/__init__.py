"""results/ on disk: one folder per run, one per cell, each written once and atomically."""
