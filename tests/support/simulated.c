#include "simulated.h"

enum status simulate_plan(const struct plan *plan)
{
    struct plan_data data = {0};
    struct region *region = region_create();
    enum status status = region ? plan_to_data(plan, region, &data) : ST_FAILED;
    if (status == ST_OK) status = simulate(&data);
    region_destroy(region);
    return status;
}
