"""Makes rope/: tiny Llamas of random weights with scaled rotations, and their logits by transformers in float64.

    pip install transformers==5.24.0 torch && python3 make_rope.py

The contexts that were scaled from are 16 tokens, and the logits are those of 64: scaling matters for both.
"""
import json
import pathlib

import torch
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).parent / "rope"
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
}
for name, scaling in SCALINGS.items():
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=1, head_dim=16,
                         max_position_embeddings=64, rope_parameters={"rope_theta": 1000.0, **scaling})
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    model.save_pretrained(HERE / name)
    (HERE / name / "generation_config.json").unlink(missing_ok=True)
    ids = torch.randint(0, 24, (64,))
    with torch.no_grad():
        logits = model.double()(ids[None]).logits[0]
    expected = {"input_ids": ids.tolist(), "logits": [[round(x, 9) for x in row] for row in logits[::9].tolist()], "every": 9}
    (HERE / name / "expected.json").write_text(json.dumps(expected) + "\n")
