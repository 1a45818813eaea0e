#include "simulated.h"

enum status simulate_plan(const struct plan *plan)
{
    struct plan_data data = {0};
    struct region *region = region_create();
    plan_to_data(plan, region, &data);
    const enum status status = simulate(&data);
    region_destroy(region);
    return status;
}
