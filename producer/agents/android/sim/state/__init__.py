"""The state of the phone and how it changes. Knows nothing of pixels, actions or shells."""
