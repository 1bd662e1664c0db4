"""The functions that rules and users' views may call: those whose result depends on their arguments alone.

A list of what is allowed, not of what is forbidden: DuckDB gains functions with every version, and one that reads a
file, a setting or the clock must not become callable because nobody has heard of it. Macros of the packaged and the
user's own views are allowed beside these.
"""

from __future__ import annotations

_OPERATORS = """
    + - * / // % ** ^ & | ~ << >> || @ ! && @> <@ ^@ ~~ !~~ ~~* !~~* ~~~ -> ->> <->
    like_escape not_like_escape ilike_escape not_ilike_escape
"""
_CHOICES = """
    if ifnull nullif coalesce greatest least error setting constant_or_null hash
"""
_NUMBERS = """
    abs add subtract multiply divide mod fmod fdiv ceil ceiling floor round round_even roundbankers trunc even sign
    signbit sqrt cbrt pow power exp ln log log2 log10 pi sin cos tan cot asin acos atan atan2 sinh cosh tanh asinh acosh
    atanh degrees radians gcd lcm greatest_common_divisor least_common_multiple factorial gamma lgamma nextafter
    isnan isinf isfinite xor bit_count get_bit equi_width_bins width_bucket is_histogram_other_bin
"""
_TEXTS = """
    ascii bar base64 bin char_length character_length chr concat concat_ws contains damerau_levenshtein ends_with format
    format_bytes formatreadablesize formatreadabledecimalsize from_base64 hamming mismatches hex instr jaccard
    jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length length_grapheme levenshtein editdist3
    lower lpad ltrim md5 md5_number md5_number_lower md5_number_upper nfc_normalize ord parse_dirname parse_dirpath
    parse_filename parse_path position prefix printf regexp_escape regexp_extract regexp_extract_all regexp_full_match
    regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right right_grapheme rpad rtrim sha1
    sha256 split split_part starts_with str_split str_split_regex string_split string_split_regex string_to_array
    strip_accents strlen strpos substr substring substring_grapheme suffix to_base to_binary to_hex translate trim ucase
    unbin unhex unicode upper url_decode url_encode typeof pg_typeof octet_length bit_length
"""
_LISTS = """
    array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains array_cosine_distance
    array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product array_extract
    array_filter array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product array_intersect
    array_length array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front array_position
    array_prepend array_push_back array_push_front array_reduce array_resize array_reverse array_reverse_sort
    array_select array_slice array_sort array_to_string array_transform array_unique array_value array_where array_zip
    aggregate apply filter flatten generate_series grade_up range reduce unnest unpivot_list
    list_aggr list_aggregate list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and
    list_bit_or list_bit_xor list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element list_entropy
    list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof
    list_inner_product list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min
    list_mode list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
    list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
    list_var_samp list_where list_zip
"""
_STRUCTURES = """
    row struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
    struct_keys struct_pack struct_position struct_update struct_values
    cardinality element_at map map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
    map_extract_value map_from_entries map_keys map_values
    json json_array json_array_length json_contains json_exists json_extract json_extract_path json_extract_path_text
    json_extract_string json_keys json_merge_patch json_object json_quote json_structure json_type json_valid json_value
    to_json from_json array_to_json row_to_json
    enum_code enum_first enum_last enum_range enum_range_boundary union_extract union_tag union_value
"""
_TIMES = """
    age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
    dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian
    last_day make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns microsecond millennium millisecond
    minute month monthname nanosecond normalized_interval quarter second strftime strptime time_bucket to_centuries
    to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds
    to_weeks to_years try_strptime week weekday weekofyear year yearweek
"""
_AGGREGATES = """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last
    arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr
    count count_if count_star countif covar_pop covar_samp entropy favg first fsum geomean geometric_mean group_concat
    histogram histogram_exact kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean median min min_by
    mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan
    var_pop var_samp variance wavg weighted_avg
"""
_WINDOWS = """
    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number
"""

FUNCTIONS = frozenset(
    " ".join(
        (_OPERATORS, _CHOICES, _NUMBERS, _TEXTS, _LISTS, _STRUCTURES, _TIMES, _AGGREGATES, _WINDOWS)
    ).split()
)  # fmt: skip
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})

# SQL spells some functions without parentheses: to the parser they are columns.
SPELT_AS_COLUMNS = frozenset(
    {"current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
     "current_user", "localtime", "localtimestamp", "session_user", "user"}
)  # fmt: skip
