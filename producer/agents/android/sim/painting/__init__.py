"""Scene to pixels: widgets are drawn with Pillow, screens are composed from them."""
