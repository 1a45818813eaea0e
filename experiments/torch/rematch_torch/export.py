"""Writes the training step of a model as a graph file, which `rematch plan --graph` plans without torch."""
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop

from .backend import check_inputs
from .errors import check_torch, refuse
from .graph_file import GraphFile
from .joint import Joint
from .profile import Profile


class Captured(Exception):
    """Ends the compilation: nothing runs, so that no statistics move and nothing is drawn."""


def export(model, batch, path, loss_fn=None, profile="measure", name=None):
    """batch: what the model takes; with loss_fn, whose arguments are the model's output and a target, the target is the
    last of it. profile: "measure" times every operator, "flops" counts instead. Returns the file as a dictionary."""
    check_torch()
    batch = batch if isinstance(batch, (tuple, list)) else (batch,)
    costs, found = profile if isinstance(profile, Profile) else Profile(profile), []

    def partition(joint, _, *, num_fwd_outputs, **__):
        found.append(GraphFile(Joint(joint, num_fwd_outputs), costs, name or type(model).__name__))
        raise Captured

    def compiler(module, inputs):
        check_inputs(inputs)
        return aot_autograd(fw_compiler=boxed_nop, bw_compiler=boxed_nop, partition_fn=partition,
                            keep_inference_input_mutations=True)(module, inputs)

    def step(*batch):
        return model(*batch) if loss_fn is None else loss_fn(model(*batch[:-1]), batch[-1])
    try:
        torch.compile(step, backend=compiler, dynamic=False, fullgraph=True)(*batch)
    except Exception as error:
        if not isinstance(getattr(error, "inner_exception", error), Captured):
            raise
    if not found:
        refuse("the model has no gradients to compute", "call train() and leave no_grad out")
    costs.save()
    found[0].write(path)
    return found[0].root
