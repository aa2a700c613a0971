"""A trained model at work: loaded, asked, and handed on in other formats."""
