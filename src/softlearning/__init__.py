"""The best combination of algorithms for your data."""
