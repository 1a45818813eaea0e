#include "simulated.h"

enum status simulate_plan(const struct plan *plan)
{
    struct account account = {0};
    struct region *region = region_create();
    enum status status = region ? plan_account(plan, region, &account) : ST_FAILED;
    if (status == ST_OK) status = simulate(&account);
    region_destroy(region);
    return status;
}
