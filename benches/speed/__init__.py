"""Speed of siteline and of its alternatives, measured in one run."""
