"""What NiceGUI does not have: a text of marked pieces, a canvas of maps. Each a class and its script beside it."""
