"""MiniWoB++: small web pages in a real browser."""
