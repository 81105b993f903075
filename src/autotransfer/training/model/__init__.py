"""Models that were trained, in files: the model folder, its card, the ONNX graph."""
