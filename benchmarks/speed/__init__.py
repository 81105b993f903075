"""What it costs: seconds and memory of training, predicting, importing and recording."""
