"""Gradients of the ops: of our own ops, and of stock ops without a gradient in TensorFlow.

First derivatives are fused ops. Higher derivatives are the derivatives of the functions in
`composite`. Every module has a table ``GRADIENTS`` by the op's name in a graph; dialects.py
registers them.
"""
