-- The arithmetic: what the rules of headway.core do with one key's state. All numbers are numeric, so nothing is rounded
-- and nothing overflows. Nothing here reads a clock or a table; states are what Rule.dump gives.

-- core.reserved.unpack and core.gcra.Gcra._ledger: a state in ticks of this scale.
CREATE FUNCTION {schema}.ledger(
    s numeric[], scale numeric, now numeric,
    OUT tat numeric, OUT debt numeric, OUT given numeric[], OUT records numeric[]
) LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    last integer;
BEGIN
    tat := CASE WHEN s[2] = scale THEN s[1] ELSE div(s[1] * scale + s[2] - 1, s[2]) END;
    debt := CASE WHEN s[3] IS NULL OR s[2] = scale THEN coalesce(s[3], 0) ELSE div(s[3] * scale + s[2] - 1, s[2]) END;
    records := '{}';
    FOR i IN 4 .. coalesce(array_length(s, 1), 0) BY 4 LOOP
        IF s[i] <= 0 THEN  -- what was given back; tokens are above 0
            IF s[i + 3] > now THEN
                given := ARRAY[-s[i], div(s[i + 1] * scale + s[2] - 1, s[2]), div(s[i + 2] * scale, s[2]), s[i + 3]];
            END IF;
        ELSIF s[i + 3] > now THEN
            records := records || ARRAY[s[i], div(s[i + 1] * scale, s[2]), div(s[i + 2] * scale, s[2]), s[i + 3]];
        ELSIF records <> '{}' THEN  -- its lease has ended; what is known of later arrivals is kept
            last := array_length(records, 1);
            records[last - 1] := least(records[last - 1], div(s[i + 2] * scale, s[2]));
        END IF;
    END LOOP;
END
$$;

-- core.gcra.Gcra._state and expires_at.
CREATE FUNCTION {schema}.tat_state(
    tat numeric, scale numeric, debt numeric, given numeric[], records numeric[], OUT kept text, OUT expires numeric
) LANGUAGE plpgsql IMMUTABLE AS
$$
BEGIN
    kept := tat || ':' || scale;
    expires := div(tat + scale - 1, scale);
    IF debt = 0 AND given IS NULL AND records = '{}' THEN RETURN; END IF;
    kept := kept || ':' || debt;
    IF given IS NOT NULL THEN
        kept := kept || ':' || array_to_string(ARRAY[-given[1]] || given[2:], ':');
        expires := greatest(expires, given[4]);
    END IF;
    IF records <> '{}' THEN
        kept := kept || ':' || array_to_string(records, ':');
        FOR i IN 4 .. array_length(records, 1) BY 4 LOOP
            expires := greatest(expires, records[i]);
        END LOOP;
    END IF;
END
$$;

-- Where the window ends that a first hit at "now" falls into; p: 0 aligned | 1 anchored | 2 calendar, period | boundaries ...
-- NULL where these do not reach.
CREATE FUNCTION {schema}.fresh_end(p numeric[], now numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS
$$
BEGIN
    IF p[1] = 1 THEN RETURN now + p[2]; END IF;
    IF p[1] = 0 THEN RETURN (div(now, p[2]) + 1) * p[2]; END IF;
    IF p[2] > now THEN RETURN NULL; END IF;
    FOR i IN 3 .. array_length(p, 1) LOOP
        IF p[i] > now THEN RETURN p[i]; END IF;
    END LOOP;
    RETURN NULL;
END
$$;

-- core.sliding_window.SlidingWindow._seen: end, current, previous, and whether it had to be capped.
CREATE FUNCTION {schema}.counters(
    s numeric[], now numeric, period numeric, OUT ends numeric, OUT current numeric, OUT previous numeric, OUT capped boolean
) LANGUAGE plpgsql IMMUTABLE AS
$$
BEGIN
    ends := (div(now, period) + 1) * period; current := 0; previous := 0; capped := false;
    IF s IS NULL OR now >= s[1] + s[2] THEN RETURN; END IF;
    IF s[1] > (div(now + {slack}, period) + 1) * period THEN
        current := s[3] + s[4]; capped := true;
    ELSIF s[2] <> period THEN  -- SlidingWindow._adopted
        IF now < s[1] THEN current := s[3] + s[4]; capped := s[1] > ends;
        ELSIF s[1] + period > ends THEN current := s[3];
        ELSIF s[1] + 2 * period > ends THEN previous := s[3];
        END IF;
    ELSIF now < s[1] THEN ends := s[1]; current := s[3]; previous := s[4];
    ELSE previous := s[3];
    END IF;
END
$$;

-- core.sliding_log._with
CREATE FUNCTION {schema}.arrived(log numeric[], now numeric, units numeric) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    last constant integer := coalesce(array_length(log, 1), 0);
BEGIN
    IF last > 0 AND log[last - 1] >= now THEN log[last] := log[last] + units; RETURN log; END IF;
    RETURN log || now || units;
END
$$;

-- Leases in the order of expiry, token and units; those beyond "longest" are cut to end at "cut".
CREATE FUNCTION {schema}.in_order(leases numeric[], longest numeric DEFAULT NULL, cut numeric DEFAULT NULL) RETURNS numeric[]
LANGUAGE sql IMMUTABLE AS
$$
    SELECT array_agg(CASE part WHEN 0 THEN ends ELSE leases[i + part] END ORDER BY ends, leases[i + 1], leases[i + 2], i, part)
    FROM (
        SELECT i, CASE WHEN leases[i] > longest THEN cut ELSE leases[i] END AS ends
        FROM generate_series(1, array_length(leases, 1), 3) AS i
    ) AS lease CROSS JOIN generate_series(0, 2) AS part
$$;

-- core.concurrency._held
CREATE FUNCTION {schema}.held(s numeric[], now numeric) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS
$$
BEGIN
    FOR i IN 1 .. coalesce(array_length(s, 1), 0) BY 3 LOOP
        IF s[i] > now THEN RETURN s[i:]; END IF;  -- they are in the order of expiry
    END LOOP;
    RETURN '{}';
END
$$;

-- What one limit does with one cost: the translation of Rule.decide of core.gcra, core.fixed_window, core.calendar_window,
-- core.sliding_window, core.sliding_log, core.growing_wait, core.concurrency and core.block. What it means for a caller is
-- worked out by those rules themselves, from the state before.
--
--   p          the rule's parameters, see codec.py
--   room       the units that fit now; NULL: a calendar's boundaries do not reach around "now"
--   kept       the state to keep; NULL where nothing is to be written
CREATE FUNCTION {schema}.decide(
    kind text, p numeric[], s numeric[], now numeric, cost numeric, token numeric, ttl numeric,
    OUT room numeric, OUT kept text, OUT expires numeric
) LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    start numeric; owed numeric := 0; capped boolean := false; one record; last integer;
    debt numeric := 0; given numeric[]; records numeric[] := '{}';
    window_end numeric; used numeric := 0; made numeric; latest numeric; numbers numeric[];
BEGIN
    CASE kind
    WHEN 'gcra' THEN  -- p: interval, depth, scale
        start := now * p[3];
        IF s IS NOT NULL THEN
            IF array_length(s, 1) = 2 AND s[2] = p[3] THEN
                owed := s[1] - start;
            ELSE
                SELECT * INTO one FROM {schema}.ledger(s, p[3], now);
                owed := one.tat - start; debt := one.debt; given := one.given; records := one.records;
            END IF;
            IF owed > p[2] + debt + {slack} * p[3] THEN owed := p[2] + debt; capped := true;
            ELSIF owed < 0 THEN owed := 0;
            END IF;
        END IF;
        room := CASE WHEN owed > p[2] THEN 0 ELSE div(p[2] - owed, p[1]) END;
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN
            last := array_length(records, 1);
            IF last > 0 THEN records[last - 1] := least(records[last - 1], owed); END IF;
            owed := owed + cost * p[1];
            IF token <> 0 THEN records := records || ARRAY[token, cost * p[1], {nothing_yet}, now + ttl]; END IF;
            SELECT * INTO kept, expires FROM {schema}.tat_state(start + owed, p[3], 0, given, records);
        ELSIF capped THEN
            SELECT * INTO kept, expires FROM {schema}.tat_state(start + owed, p[3], debt, NULL, '{}');
        END IF;

    WHEN 'window' THEN  -- p: burst, count_refused, then what fresh_end takes
        window_end := {schema}.fresh_end(p[3:], now);
        latest := {schema}.fresh_end(p[3:], now + {slack});
        IF latest IS NULL OR window_end IS NULL THEN RETURN; END IF;
        IF s IS NOT NULL AND now < s[1] THEN
            used := s[2];
            IF s[1] > window_end AND s[1] > latest THEN capped := true;
            ELSIF p[3] = 1 THEN window_end := s[1];
            ELSE window_end := greatest(window_end, s[1]);
            END IF;
        END IF;
        room := greatest(0, p[1] - used);
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN used := used + cost;
        ELSIF cost <= p[1] AND p[2] = 1 AND used < p[1] THEN used := p[1];
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := window_end || ':' || used;
        expires := window_end;

    WHEN 'sliding-window' THEN  -- p: burst, period
        SELECT * INTO one FROM {schema}.counters(s, now, p[2]);
        room := greatest(0, div(greatest(0, p[1] * p[2] - one.previous * least(p[2], one.ends - now)), p[2]) - one.current);
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN one.current := one.current + cost;
        ELSIF NOT one.capped THEN RETURN;
        END IF;
        kept := one.ends || ':' || p[2] || ':' || one.current || ':' || one.previous;
        expires := one.ends + p[2];

    WHEN 'sliding-log' THEN  -- p: burst, period
        numbers := '{}';
        FOR i IN 1 .. coalesce(array_length(s, 1), 0) BY 2 LOOP
            IF s[i] + p[2] > now THEN numbers := s[i:]; EXIT; END IF;
        END LOOP;
        last := coalesce(array_length(numbers, 1), 0);
        IF last > 0 AND numbers[last - 1] > now + {slack} THEN  -- a dishonest log: the instants beyond the slack become now
            capped := true;
            SELECT array_agg(part ORDER BY arrival, place) INTO numbers
            FROM (
                SELECT CASE WHEN numbers[i] > now + {slack} THEN now ELSE numbers[i] END AS arrival, sum(numbers[i + 1]) AS units
                FROM generate_series(1, last, 2) AS i GROUP BY 1
            ) AS honest CROSS JOIN LATERAL (VALUES (1, arrival), (2, units)) AS parts (place, part);
            last := array_length(numbers, 1);
        END IF;
        FOR i IN 2 .. last BY 2 LOOP used := used + numbers[i]; END LOOP;
        room := greatest(0, p[1] - used);
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN numbers := {schema}.arrived(numbers, now, cost);
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := array_to_string(numbers, ':');
        expires := numbers[array_length(numbers, 1) - 1] + p[2];

    WHEN 'concurrency' THEN  -- p: burst, ttl
        numbers := {schema}.held(s, now);
        last := coalesce(array_length(numbers, 1), 0);
        IF last > 0 AND numbers[last - 2] > now + p[2] + {slack} THEN
            capped := true;
            numbers := {schema}.in_order(numbers, now + p[2] + {slack}, now + p[2]);
        END IF;
        FOR i IN 3 .. last BY 3 LOOP used := used + numbers[i]; END LOOP;
        room := greatest(0, p[1] - used);
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN
            numbers := {schema}.in_order(numbers || ARRAY[now + p[2], token, cost]);
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := array_to_string(numbers, ':');
        expires := numbers[array_length(numbers, 1) - 2];

    WHEN 'growing-wait' THEN  -- p: burst, first, longest, forgiven_after
        made := 0; latest := now;
        IF s IS NOT NULL AND now < s[2] + p[4] THEN
            made := s[1]; latest := s[2];
            IF latest > now + {slack} THEN latest := now; capped := true; END IF;
        END IF;
        IF made < p[1] THEN room := p[1] - made;
        ELSE
            room := CASE WHEN now >= latest + CASE WHEN made - p[1] > 64 THEN p[3]
                ELSE least(p[3], p[2] * power(2::numeric, made - p[1])) END THEN 1 ELSE 0 END;
        END IF;
        IF cost = 0 THEN RETURN; END IF;
        IF cost <= room THEN made := made + cost; latest := greatest(now, latest);
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := made || ':' || latest;
        expires := latest + p[4];

    ELSE  -- block
        room := 0;
    END CASE;
END
$$;

-- What is left of a GCRA state after a change: the translation of give_back and take of core.gcra.Gcra, and (mode 2) of
-- nothing there: a charge that nobody was told of is taken off.
CREATE FUNCTION {schema}.apply_gcra(
    p numeric[], s numeric[], now numeric, back numeric, more numeric, mode numeric,
    cost numeric, token numeric, at numeric, reset numeric,
    OUT in_time boolean, OUT changed boolean, OUT kept text, OUT expires numeric
) LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    step constant numeric := p[1]; depth constant numeric := p[2]; scale constant numeric := p[3];
    start constant numeric := now * scale;
    tat numeric := start; debt numeric := 0; given numeric[]; records numeric[] := '{}';
    most numeric; least_end numeric; ended numeric; moved numeric; ticks numeric; owed numeric; place integer; last integer;
BEGIN
    in_time := true; changed := false;
    IF s IS NOT NULL THEN
        SELECT l.tat, l.debt, l.given, l.records INTO tat, debt, given, records FROM {schema}.ledger(s, scale, now) AS l;
    END IF;
    IF mode = 2 THEN
        -- Off again, a moment later. What the key owed before it may have been paid by now: then it has idled without the
        -- charge, and so much stays charged, whatever came in between.
        IF s IS NULL THEN RETURN; END IF;
        changed := true;
        ended := (at + reset) * scale - scale + 1 - cost * step;
        owed := greatest(0, tat - start);
        ticks := least(owed, greatest(0, cost * step - greatest(0, start - ended)));
        FOR i IN 1 .. coalesce(array_length(records, 1), 0) BY 4 LOOP
            records[i + 2] := greatest(0, records[i + 2] - cost * step);
        END LOOP;
        tat := start + owed - ticks;
        debt := least(debt, greatest(0, owed - ticks - depth));
    ELSIF s IS NOT NULL AND (back > 0 OR token <> 0) THEN
        -- Gcra._charged: the TAT just after the charge
        most := (at + reset) * scale;
        least_end := most - scale + 1;
        moved := tat + coalesce(given[2], 0);
        ended := least_end + mod(mod(moved - least_end, step) + step, step);
        IF NOT (ended <= most AND (least_end > start OR moved <= most)) THEN ended := least_end; END IF;
        IF given IS NOT NULL AND at <= given[1] AND ended > given[3] THEN  -- Ledger.ended
            ended := greatest(ended - given[2], CASE WHEN given[3] > 0 THEN least(ended, at * scale + cost * step) END);
        END IF;
        IF token <> 0 THEN  -- core.reserved.give_back
            last := coalesce(array_length(records, 1), 0);
            FOR i IN 1 .. last BY 4 LOOP
                IF records[i] = token THEN place := i; EXIT; END IF;
            END LOOP;
            IF place IS NOT NULL THEN
                changed := true;
                ticks := div(records[place + 1] * least(back, cost), cost);
                owed := ticks;
                FOR i IN place .. last BY 4 LOOP
                    owed := least(owed, records[i + 2]);
                    records[i + 2] := greatest(0, records[i + 2] - ticks);
                END LOOP;
                IF place > 1 THEN records[place - 2] := least(records[place - 2], records[place + 2]); END IF;
                records := records[: place - 1] || records[place + 4 :];
                ticks := owed;
            END IF;
        ELSIF tat >= ended THEN
            changed := true;
            ticks := least(back * step, greatest(0, ended - greatest(start, ended - cost * step)));
            FOR i IN 1 .. coalesce(array_length(records, 1), 0) BY 4 LOOP
                records[i + 2] := greatest(0, records[i + 2] - back * step);
            END LOOP;
        END IF;
        IF changed THEN
            owed := greatest(0, tat - start);
            ticks := least(ticks, owed);
            IF ticks > 0 AND tat >= ended + step THEN  -- Ledger.after
                given := ARRAY[now, ticks + coalesce(given[2], 0), least(ended, given[3]),
                    greatest(div(s[1] + s[2] - 1, s[2]), given[4])];
            END IF;
            tat := start + owed - ticks;
            debt := least(debt, greatest(0, owed - ticks - depth));
        END IF;
    END IF;
    IF mode = 1 AND NOT changed THEN in_time := false; RETURN; END IF;
    IF more > 0 THEN
        changed := true;
        owed := greatest(0, tat - start);
        last := array_length(records, 1);
        IF last > 0 THEN records[last - 1] := least(records[last - 1], owed); END IF;
        owed := greatest(owed, least(owed + more * step, depth + {max_recovery} * scale));
        tat := start + owed;
        debt := greatest(0, owed - depth);
    END IF;
    IF changed THEN SELECT t.kept, t.expires INTO kept, expires FROM {schema}.tat_state(tat, scale, debt, given, records) AS t; END IF;
END
$$;

-- One change: the translation of core.change.Change.applied, and of give_back, take and renew of every rule but GCRA.
--
--   n          see {schema}.change
--   changed    there is something to write: kept, or nothing where it is NULL
CREATE FUNCTION {schema}.apply(
    kind text, n numeric[], s numeric[], now numeric,
    OUT in_time boolean, OUT changed boolean, OUT kept text, OUT expires numeric
) LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    back constant numeric := n[1]; more constant numeric := n[2]; renew constant boolean := n[3] = 1; late constant numeric := n[4];
    cost constant numeric := n[6]; token constant numeric := n[7]; at constant numeric := n[8]; reset constant numeric := n[9];
    p constant numeric[] := n[10:];
    units numeric := least(n[1], n[6]); numbers numeric[]; one record; made numeric; latest numeric; charged_end numeric;
BEGIN
    changed := false;
    IF kind = 'concurrency' THEN
        in_time := false;
        numbers := {schema}.held(s, now);
        FOR i IN 1 .. coalesce(array_length(numbers, 1), 0) BY 3 LOOP
            IF numbers[i + 1] = token AND (token <> 0 OR (NOT renew AND numbers[i] = at + p[2])) THEN
                in_time := true; changed := true;
                IF renew THEN
                    numbers[i] := now + p[2];
                ELSE
                    IF back < numbers[i + 2] THEN numbers[i + 2] := numbers[i + 2] - back;
                    ELSE numbers := numbers[: i - 1] || numbers[i + 3 :];
                    END IF;
                    EXIT;
                END IF;
            END IF;
        END LOOP;
        IF changed AND numbers <> '{}' THEN
            IF renew THEN numbers := {schema}.in_order(numbers); END IF;
            kept := array_to_string(numbers, ':');
            expires := numbers[array_length(numbers, 1) - 2];
        END IF;
        RETURN;
    END IF;
    in_time := true;
    IF renew THEN RETURN; END IF;
    IF late >= 0 AND now >= late THEN in_time := false; RETURN; END IF;
    CASE kind
    WHEN 'gcra' THEN
        SELECT * INTO in_time, changed, kept, expires
        FROM {schema}.apply_gcra(p, s, now, back, more, n[5], cost, token, at, reset);

    WHEN 'window' THEN
        IF s IS NOT NULL AND back > 0 AND now < s[1] AND s[1] = at + reset THEN
            changed := true;
            s := CASE WHEN s[2] > units THEN ARRAY[s[1], s[2] - units] END;
        END IF;
        IF more > 0 THEN
            changed := true;
            IF s IS NULL OR now >= s[1] THEN
                s := ARRAY[{schema}.fresh_end(p[3:], now), more];
                IF s[1] IS NULL THEN in_time := NULL; RETURN; END IF;
            ELSE s[2] := s[2] + more;
            END IF;
        END IF;
        kept := s[1] || ':' || s[2];
        expires := s[1];

    WHEN 'sliding-window' THEN
        IF s IS NOT NULL AND back > 0 AND s[2] = p[2] THEN
            SELECT * INTO one FROM {schema}.counters(s, now, p[2]);
            charged_end := at + reset - p[2];
            IF one.capped THEN NULL;
            ELSIF charged_end >= one.ends THEN
                changed := true;
                s := ARRAY[one.ends, p[2], greatest(0, one.current - units), one.previous];
            ELSIF charged_end = one.ends - p[2] THEN
                changed := true;
                s := ARRAY[one.ends, p[2], one.current, greatest(0, one.previous - units)];
            END IF;
        END IF;
        IF more > 0 THEN
            changed := true;
            made := coalesce(s[2], p[2]);  -- the windows that the state speaks of
            SELECT * INTO one FROM {schema}.counters(s, now, made);
            s := ARRAY[one.ends, made, one.current + more, one.previous];
        END IF;
        kept := array_to_string(s, ':');
        expires := s[1] + s[2];

    WHEN 'sliding-log' THEN
        latest := at + reset - p[2];
        IF s IS NOT NULL AND back > 0 AND now < latest + p[2] THEN
            FOR i IN 1 .. array_length(s, 1) BY 2 LOOP
                IF s[i] = latest THEN
                    changed := true;
                    IF s[i + 1] > units THEN s[i + 1] := s[i + 1] - units;
                    ELSE s := s[: i - 1] || s[i + 2 :];
                    END IF;
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        IF more > 0 THEN
            changed := true;
            s := {schema}.arrived(coalesce(s, '{}'), now, more);
        END IF;
        IF s <> '{}' THEN
            kept := array_to_string(s, ':');
            expires := s[array_length(s, 1) - 1] + p[2];
        END IF;

    WHEN 'growing-wait' THEN
        made := 0; latest := now;
        IF s IS NOT NULL AND now < s[2] + p[4] THEN
            made := s[1];
            latest := CASE WHEN s[2] > now + {slack} THEN now ELSE s[2] END;
        END IF;
        IF back > 0 AND made > 0 AND latest >= at AND now < at + p[4] THEN
            changed := true;
            made := made - units;
            IF made <= 0 THEN made := 0; latest := now; END IF;
        END IF;
        IF more > 0 THEN
            changed := true;
            made := made + more; latest := greatest(now, latest);
        END IF;
        IF made > 0 THEN
            kept := made || ':' || latest;
            expires := latest + p[4];
        END IF;

    ELSE  -- block
        in_time := n[5] = 0;
    END CASE;
END
$$;

-- A database may keep new functions from everybody; whom the schema lets in may call all of these.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO PUBLIC;

INSERT INTO {schema}.version (number) VALUES ({number}) ON CONFLICT (one) DO UPDATE SET number = excluded.number;
