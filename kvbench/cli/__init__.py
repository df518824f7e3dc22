"""The command line: ``main`` and one module per verb.  Only this room prints."""
