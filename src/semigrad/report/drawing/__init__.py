"""Charts as SVG, and what makes them files."""
