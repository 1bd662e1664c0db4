-- Part of the ranks, those that do least, without a slow rank: up to half of the ranks may be slow.
create macro job_base_part() as 0.25;

-- Second part of them, the tenth of the ranks that does least: how far both lie apart is the spread of equal ranks.
create macro job_low_part() as 0.1;

-- The standard deviation of a normal distribution with these quantiles, at `job_base_part` and `job_low_part`. Slow
-- ranks, which lie above, have no part in it. The two lie 1.28155 and 0.67449 standard deviations below the mean
-- (https://www.itl.nist.gov/div898/handbook/eda/section3/eda3671.htm).
create macro lower_spread(base, low) as (base - low) / (1.28155 - 0.67449);

-- The standard deviation of a normal distribution with this median of the distances from its median: half of it lies
-- within 0.67449 standard deviations (https://www.itl.nist.gov/div898/handbook/eda/section3/eda356.htm).
create macro spread_of_mad(mad_ns) as mad_ns / 0.67449;
