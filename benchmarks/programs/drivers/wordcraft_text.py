"""Training of the text generator of WordCraft."""

from pathlib import Path

import numpy as np
from wordcraft.wordcraft import WordCraft

rng = np.random.default_rng(0)
words = [f"w{number}" for number in range(300)]
Path("text.txt").write_text("\n".join(" ".join(rng.choice(words, 21)) for _ in range(40)))
generator = WordCraft()
generator.load_data("text.txt")
generator.train(epochs=4, batch_size=32)
generator.save_model("model")
