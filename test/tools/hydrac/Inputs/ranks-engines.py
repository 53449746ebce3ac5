"""What descriptions say of copy engines: rates, own pieces that end within a page, and copies beside the last part of kernels."""
import json


def step(name):
    return json.load(open(f"{name}.json"))["step"]


def total(one, field):
    return sum(exchange[field] for exchange in one["exchanges"])


engines, kernels = step("engines-2"), step("kernels-2")
# All but norms and numbers of the step are moved by engines.
assert engines["wire_bytes"] == kernels["wire_bytes"]
assert 0.98 * engines["wire_bytes"] / 1e5 < engines["wire_microseconds"] and kernels["wire_microseconds"] < 0.5 * engines["wire_microseconds"]
assert step("engines-across")["wire_microseconds"] == step("kernels-across")["wire_microseconds"]
tail = step("tail-2")
assert total(tail, "own_copy_microseconds") == total(kernels, "own_copy_microseconds")
assert total(tail, "alone_microseconds") < total(kernels, "alone_microseconds")
# Matrices of this model are whole pages, but for a vocabulary of another size.
assert total(step("odd-2"), "own_copy_microseconds") == total(tail, "own_copy_microseconds")
assert total(step("odd-pieces"), "own_copy_microseconds") > 1.2 * total(tail, "own_copy_microseconds")
print("copy engines have rates of their own")
