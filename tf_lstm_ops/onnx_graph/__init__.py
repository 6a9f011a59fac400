"""Reads ONNX files: what is constant in them, and their recurrent nodes.

The package onnx is imported when a file is read. Nothing of a file is executed.
"""
