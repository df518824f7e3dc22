"""Read the machine and decide whether a target may be touched."""
