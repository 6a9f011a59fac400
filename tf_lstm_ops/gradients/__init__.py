"""Gradients of the ops: of our own, and of stock ops that TensorFlow gives none.

First derivatives are fused ops. Their derivatives, of any order, are those of `composite`. Every
module has a table ``GRADIENTS`` by the op's name in a graph; dialects.py registers them.
"""
