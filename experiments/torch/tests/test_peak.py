"""The peak that a plan predicts is the one that is counted."""
import torch

import rematch_torch

from . import models
from .support import NETWORKS, Case, network


def counted_step(run, model, batch):
    """Bytes of a step beyond what was live before it, by the allocator."""
    run(*batch).backward()
    for p in model.parameters():
        p.grad = None
    with rematch_torch.Counter() as counter:
        run(*batch).backward()
    return counter.peak


class Peak(Case):
    def test_predictions_hold(self):
        for name in NETWORKS:
            for budget in ("100%", "75%", "least"):
                with self.subTest(network=name, budget=budget):
                    torch._dynamo.reset()
                    model, batch = network(name)
                    run = rematch_torch.compile(model, budget)
                    counted = counted_step(run, model, batch)
                    region = run.rematch.regions[0]
                    self.assertLessEqual(counted, region.predicted)
                    self.assertGreater(counted, 0.98 * region.predicted)
                    self.assertLessEqual(region.counted, region.predicted)
                    self.assertGreater(region.counted, 0.98 * region.predicted)

    def test_outputs_that_the_caller_holds(self):
        for kind in (models.TwoOutputs, models.OutputReadOn):
            with self.subTest(model=kind.__name__):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model, x = kind(width=256), torch.randn(256, 256)
                run = rematch_torch.compile(model, "least")
                sum(p.square().mean() for p in run(x)).backward()
                for p in model.parameters():
                    p.grad = None
                with rematch_torch.Counter() as counter:
                    out = run(x)
                    gradients = [torch.full_like(p, 0.1) for p in out]
                    torch.autograd.backward(out, gradients)
                self.assertLessEqual(counter.peak, run.rematch.regions[0].predicted)
                self.assertGreater(counter.peak, 0.98 * run.rematch.regions[0].predicted)
                del out, gradients  # before the next is counted

    def test_a_budget_in_bytes_is_kept(self):
        model, batch = network("unet")
        batch_bytes = sum(t.numel() * t.element_size() for t in batch)
        static = batch_bytes + sum(t.numel() * t.element_size() for t in model.state_dict().values())
        run = rematch_torch.compile(model, 700000)
        self.assertLessEqual(counted_step(run, model, batch) + static, 700000)

    def test_nothing_outlives_a_step(self):
        model, batch = network("gpt")
        run = rematch_torch.compile(model, "least")
        grads = sum(p.numel() * 4 for p in model.parameters())
        for _ in range(2):  # the second is not counted: what it kept would not be seen to die in the third
            for p in model.parameters():
                p.grad = None
            run(*batch).backward()
        for p in model.parameters():
            p.grad = None
        with rematch_torch.Counter() as counter:
            run(*batch).backward()
        self.assertEqual(counter.live, grads)

    def test_the_report_says_what_was_counted(self):
        model, batch = network("unet")
        run = rematch_torch.compile(model, "75%")
        self.assertIn("nothing was planned", run.rematch.report())
        run(*batch).backward()
        self.assertRegex(run.rematch.report(), r"part 1: peak [0-9.]+ MiB predicted, [0-9.]+ MiB counted")
        self.assertRegex(run.rematch.explain(), r"peak of .* at .*@unet.py:\d+; live there:\n +[0-9.]+ MiB")
