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
    embedded = x @ w["embedding.weight"].T + w["embedding.bias"]
    if block.embedding_norm is not None:
        embedded = np.stack([layer_norm(row, block.embedding_norm) for row in embedded])
    query = embedded @ w["query.weight"].T + w["query.bias"]
    key = embedded @ w["key.weight"].T + w["key.bias"]
    d_head = query.shape[1] // n_heads
    root = math.sqrt(x.shape[1] * d_head)
    temperature = 1 / (block.scale * root)
    result = np.zeros((n_heads, n, n))
    for h in range(n_heads):
        part = slice(h * d_head, (h + 1) * d_head)
        for effect in range(n):
            logits = np.array(
                [
                    query[effect, part]
                    @ key[cause, part]
                    / root
                    * w["mask"][h, cause, effect]
                    / temperature
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
        if model.attention_norm is not None:
            result[effect] = layer_norm(result[effect], model.attention_norm)
        for t in range(x.shape[1]):
            hidden = ffn["inner.weight"][:, 0] * result[effect, t] + ffn["inner.bias"]
            hidden = np.where(hidden > 0, hidden, 0.01 * hidden)
            result[effect, t] = ffn["outer.weight"][0] @ hidden + ffn["outer.bias"][0]
        if model.feed_forward_norm is not None:
            result[effect] = layer_norm(result[effect], model.feed_forward_norm)
    return result * model.output.weight.item() + model.output.bias.item()
