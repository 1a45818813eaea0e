/* The best-case step, from steps that were each delayed at another op. */
#include <criterion/criterion.h>

#include "result/timing.h"

Test(timing, the_best_case_step_sums_the_least_times)
{
    static const uint64_t op_ns[3][2] = {{100, 40}, {70, 55}, {90, 30}}, step_ns[3] = {160, 130, 125};
    static const uint64_t least[3][3] = {{100, 40, 20}, {70, 40, 5}, {70, 30, 5}};
    uint64_t kept[2] = {0};
    struct best_case u = {.ops = 2, .op_ns = kept};
    cr_assert(timing_best_case(&u) == 0, "nothing is known");
    for (int i = 0; i < 3; i++) {
        timing_add(&u, op_ns[i], step_ns[i]);
        cr_expect(kept[0] == least[i][0] && kept[1] == least[i][1] && u.rest_ns == least[i][2], "step %d", i);
        cr_expect(timing_best_case(&u) == least[i][0] + least[i][1] + least[i][2]);
    }
}

Test(timing, the_first_step_does_not_count)
{
    uint64_t odd[] = {900, 30, 10, 50}, even[] = {1, 30, 10}, one[] = {5};
    const struct timing a = timing_of(odd, 4), b = timing_of(even, 3), none = timing_of(one, 1);
    cr_expect(a.steps == 3 && a.median_ns == 30 && a.least_ns == 10 && a.most_ns == 50);
    cr_expect(b.steps == 2 && b.median_ns == 20 && b.least_ns == 10 && b.most_ns == 30);
    cr_expect(none.steps == 0 && none.median_ns == 0);
}
