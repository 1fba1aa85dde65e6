"""Slow twins of the model, written straight from the paper's equations with explicit loops."""

import math

import numpy as np


def softmax(row):
    e = np.exp(row - row.max())
    return e / e.sum()


def attention(model, x):
    """A[head, cause, effect] of one window x[series, slot]."""
    block = model.attention
    w = {k: v.detach().numpy() for k, v in block.state_dict().items()}
    n_heads, n, _ = w["mask"].shape
    embedded = x @ w["form.embedding.weight"].T + w["form.embedding.bias"]
    query = embedded @ w["form.query.weight"].T + w["form.query.bias"]
    key = embedded @ w["form.key.weight"].T + w["form.key.bias"]
    d_qk = query.shape[1] // n_heads
    temperature = 1 / (block.scale * math.sqrt(d_qk))
    result = np.zeros((n_heads, n, n))
    for h in range(n_heads):
        part = slice(h * d_qk, (h + 1) * d_qk)
        for effect in range(n):
            logits = np.array(
                [
                    query[effect, part]
                    @ key[cause, part]
                    / (temperature * math.sqrt(d_qk))
                    * w["mask"][h, cause, effect]
                    for cause in range(n)
                ]
            )
            result[h, :, effect] = softmax(logits)
    return result


def convolution(kernel, x):
    """V[cause, effect, slot] of one head's kernel[cause, effect, tap] and one window."""
    n, window = x.shape
    value = np.zeros((n, n, window))
    for cause in range(n):
        padded = np.concatenate([np.zeros(window), x[cause]])
        for effect in range(n):
            for t in range(1, window + 1):
                value[cause, effect, t - 1] = kernel[cause, effect] @ padded[t : t + window] / t
            if cause == effect:
                value[cause, effect] = np.concatenate([[0.0], value[cause, effect, :-1]])
    return value


def attended(weights, kernel, head_weight, x):
    """Att[effect, slot] from attention[head, cause, effect]."""
    n, window = x.shape
    result = np.zeros((n, window))
    for h, weight in enumerate(head_weight):
        value = convolution(kernel[h], x)
        for effect in range(n):
            for cause in range(n):
                result[effect] += weight * weights[h, cause, effect] * value[cause, effect]
    return result


def layer_norm(row, norm):
    centred = (row - row.mean()) / math.sqrt(row.var() + norm.eps)
    return centred * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def predict(model, x):
    """Prediction[effect, slot] of one window."""
    result = attended(
        attention(model, x),
        model.kernel.detach().numpy(),
        model.head_weight.detach().numpy(),
        x,
    )
    ffn = {k: v.detach().numpy() for k, v in model.feed_forward.state_dict().items()}
    for effect in range(len(result)):
        if hasattr(model.attention_norm, "eps"):
            result[effect] = layer_norm(result[effect], model.attention_norm)
        for t in range(x.shape[1]):
            hidden = ffn["inner.weight"][:, 0] * result[effect, t] + ffn["inner.bias"]
            hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
            result[effect, t] = ffn["outer.weight"][0] @ hidden + ffn["outer.bias"][0]
        if hasattr(model.feed_forward_norm, "eps"):
            result[effect] = layer_norm(result[effect], model.feed_forward_norm)
    return result * model.output.weight.item() + model.output.bias.item()
