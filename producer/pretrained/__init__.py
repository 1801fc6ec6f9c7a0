"""Pretrained policies by name: fetched from the package index, converted into a policy's folder."""
