"""The studio: a local page for looking, touching, comparing and using. One file a page, each a view of results."""
