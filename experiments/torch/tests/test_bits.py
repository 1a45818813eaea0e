"""A planned training has the bits of plain eager PyTorch: losses, gradients, parameters and buffers."""
import torch

import rematch_torch

from . import models
from .support import NETWORKS, Case, network, unequal

STEPS = 3
SHARES = "100%", "85%", "75%", "70%", "65%", "least"


class Bits(Case):
    def test_networks_are_equal_at_six_budgets(self):
        for name in NETWORKS:
            model, batch = network(name)
            plain, _ = self.twins(lambda: model)
            wanted = models.train(plain, plain, lambda _: batch, STEPS)
            recomputed = set()
            for budget in SHARES:
                with self.subTest(network=name, budget=budget):
                    torch._dynamo.reset()
                    own, batch = network(name)
                    run = rematch_torch.compile(own, budget)
                    got = models.train(own, run, lambda _: batch, STEPS)
                    self.assertEqual(unequal(wanted, got), 0)
                    self.assertEqual(len(run.rematch.regions), 1)
                    recomputed.add(run.rematch.regions[0].recomputations)
            self.assertGreater(len(recomputed), 3, "the budgets gave the same plan")

    def test_what_recomputation_can_break(self):
        batch = (torch.randn(32, 32, generator=torch.Generator().manual_seed(1)),)
        for kind in models.EQUAL:
            for budget in ("100%", "least"):
                with self.subTest(model=kind.__name__, budget=budget):
                    torch._dynamo.reset()
                    if kind is models.NewValue and torch.__version__.startswith("2.6."):
                        self.skipTest("torch.compile of 2.6 alone trains it otherwise than eager, with backend='eager', too")
                    plain, own = self.twins(kind)
                    run = rematch_torch.compile(own, budget)
                    wanted = models.train(plain, plain, lambda _: batch, STEPS)
                    got = models.train(own, run, lambda _: batch, STEPS)
                    self.assertEqual(unequal(wanted, got), 0)
                    if budget == "least" and kind not in (models.Breaks, models.BreaksOnce):
                        self.assertGreater(run.rematch.regions[0].recomputations, 0)

    def test_other_batches_of_the_same_size(self):
        plain, own = self.twins(models.Norm)
        batches = [(torch.randn(32, 32, generator=torch.Generator().manual_seed(k)),) for k in range(STEPS)]
        run = rematch_torch.compile(own, "least")
        self.assertEqual(unequal(models.train(plain, plain, lambda k: batches[k], STEPS),
                                 models.train(own, run, lambda k: batches[k], STEPS)), 0)

    def test_autocast_equals_what_aot_computes(self):
        """Under autocast AOTAutograd's own graph differs from eager; the plan changes none of its bits."""
        batch = (torch.randn(32, 32),)
        for kind in (models.Dropout, models.Norm, models.Tied):
            with self.subTest(model=kind.__name__):
                torch._dynamo.reset()
                traced, own = self.twins(kind)
                unplanned = torch.compile(traced, backend="aot_eager_default_partitioner", dynamic=False)
                wanted = models.train(traced, unplanned, lambda _: batch, STEPS, autocast=True)
                torch._dynamo.reset()
                run = rematch_torch.compile(own, "least")
                self.assertEqual(unequal(wanted, models.train(own, run, lambda _: batch, STEPS, autocast=True)), 0)
                self.assertGreater(run.rematch.regions[0].recomputations, 0)

    def test_evaluation_and_state_are_untouched(self):
        plain, own = self.twins(models.Norm)
        batch = (torch.randn(32, 32),)
        run = rematch_torch.compile(own, "least")
        models.train(plain, plain, lambda _: batch, 2)
        models.train(own, run, lambda _: batch, 2)
        for model in (plain, run):
            model.eval()
        with torch.no_grad():
            self.assertTrue(torch.equal(plain(*batch), run(*batch)))
        self.assertTrue(torch.equal(plain(*batch), run(*batch)))
        self.assertEqual(list(plain.state_dict()), list(own.state_dict()))
