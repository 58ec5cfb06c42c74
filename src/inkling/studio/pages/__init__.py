"""One file a page; each has `build(studio)`, called inside the frame."""
