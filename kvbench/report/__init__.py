"""Archive -> what a reader sees: view (data), then text, figures and HTML made from it alone."""
