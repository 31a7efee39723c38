-- What a headway store keeps in PostgreSQL: one table and the functions that are all a caller needs to reach it.
-- Applied as a whole, in one transaction, under an advisory lock; applying it again changes nothing but the functions.
-- {schema} and {unlogged} are filled in by schema.py.

CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {schema}.version (one boolean PRIMARY KEY DEFAULT true CHECK (one), number integer NOT NULL);

CREATE {unlogged} TABLE IF NOT EXISTS {schema}.state (
    key     bytea PRIMARY KEY,
    state   text   NOT NULL,  -- what Rule.dump gives, joined by ':'
    expires bigint NOT NULL   -- ns since 1970
) WITH (fillfactor = 70);     -- room on the page: an update then touches no index

CREATE OR REPLACE FUNCTION {schema}.schema_version() RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER AS
$$ SELECT number FROM {schema}.version $$;

-- The server's clock, ns since 1970 on a grid of microseconds; not frozen within a transaction.
CREATE OR REPLACE FUNCTION {schema}.clock() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 $$;

-- Take the turn of some keys until the transaction ends (the locks come sorted, so nobody waits in a circle; a key that
-- has no row yet is locked like any other) and read their states. "at" is the time to decide by; NULL: the server's.
CREATE OR REPLACE FUNCTION {schema}.hold(locks bigint[], keys bytea[], at bigint, OUT now bigint, OUT states text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS
$$
BEGIN
    FOR i IN 1 .. coalesce(array_length(locks, 1), 0) LOOP
        PERFORM pg_advisory_xact_lock(locks[i]);
    END LOOP;
    now := coalesce(at, {schema}.clock());
    SELECT array_agg(s.state ORDER BY k.place) INTO states
    FROM unnest(keys) WITH ORDINALITY AS k (key, place) LEFT JOIN {schema}.state s ON s.key = k.key;
END
$$;

-- Write the states of keys that are held; a NULL state forgets its key.
CREATE OR REPLACE FUNCTION {schema}.put(keys bytea[], states text[], expires bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS
$$
BEGIN
    DELETE FROM {schema}.state s USING unnest(keys, states) AS new (key, state)
    WHERE s.key = new.key AND new.state IS NULL;
    INSERT INTO {schema}.state AS s (key, state, expires)
    SELECT new.key, new.state, new.expires FROM unnest(keys, states, expires) AS new (key, state, expires)
    WHERE new.state IS NOT NULL
    ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
END
$$;

-- Forget up to "most" recovered keys after "past", leaving alone what somebody is at; the key to go on from.
CREATE OR REPLACE FUNCTION {schema}.clean(past bytea, most integer, at bigint) RETURNS bytea
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS
$$
DECLARE
    seen bytea[];
    now constant bigint := coalesce(at, {schema}.clock());
BEGIN
    SELECT array_agg(key) INTO seen FROM (
        SELECT s.key FROM {schema}.state s WHERE s.key > past ORDER BY s.key LIMIT most
    ) AS looked_at;
    DELETE FROM {schema}.state s WHERE s.key IN (
        SELECT d.key FROM {schema}.state d WHERE d.key = ANY (seen) AND d.expires <= now FOR UPDATE SKIP LOCKED
    ) AND s.expires <= now;
    RETURN CASE WHEN array_length(seen, 1) = most THEN seen[most] ELSE ''::bytea END;
END
$$;

-- The keys of one limit (all that begin with its prefix) and their states, a page at a time.
CREATE OR REPLACE FUNCTION {schema}.page(low bytea, high bytea, most integer)
RETURNS TABLE (key bytea, state text) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS
$$ SELECT s.key, s.state FROM {schema}.state s WHERE s.key > low AND s.key < high ORDER BY s.key LIMIT most $$;

CREATE OR REPLACE FUNCTION {schema}.forget(low bytea, high bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS
$$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM {schema}.state s WHERE s.key > low AND s.key < high;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;

-- One limit's admission: the translation of core.gcra.Gcra.decide, core.fixed_window.Windowed.decide,
-- core.sliding_window.SlidingWindow.decide, core.sliding_log.SlidingLog.decide and core.growing_wait.GrowingWait.decide,
-- without leases. Only whether it admits and the state to keep; what it means for a caller is worked out by those rules
-- themselves, from the state before.
--
--   admitted   NULL: a state with reservations or debt in it, which only the rule itself reads
--   kept       the state to keep; NULL where nothing is to be written
CREATE OR REPLACE FUNCTION {schema}.decide(
    kind text, p numeric[], state text, now numeric, cost numeric, OUT admitted boolean, OUT kept text, OUT expires numeric
) LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog AS
$$
DECLARE
    slack constant numeric := 10000000000;
    s numeric[] := string_to_array(state, ':')::numeric[];
    start numeric; owed numeric; wanted numeric; capped boolean := false;
    window_end numeric; fresh_end numeric; slack_end numeric; used numeric; period numeric; view numeric;
    current numeric; previous numeric; live numeric[]; i integer; honest numeric; made numeric; latest numeric;
BEGIN
    IF cost = 0 THEN admitted := true; RETURN; END IF;
    CASE kind
    WHEN 'block' THEN
        admitted := false;

    WHEN 'gcra' THEN  -- p: interval, depth, scale
        IF array_length(s, 1) > 2 THEN RETURN; END IF;
        start := now * p[3];
        owed := 0;
        IF s IS NOT NULL THEN
            owed := CASE WHEN s[2] = p[3] THEN s[1] ELSE div(s[1] * p[3] + s[2] - 1, s[2]) END - start;
            IF owed > p[2] + slack * p[3] THEN owed := p[2]; capped := true; END IF;
            IF owed < 0 THEN owed := 0; END IF;
        END IF;
        wanted := owed + cost * p[1];
        admitted := wanted <= p[2];
        IF admitted OR capped THEN
            wanted := start + CASE WHEN admitted THEN wanted ELSE owed END;
            kept := wanted || ':' || p[3];
            expires := div(wanted + p[3] - 1, p[3]);
        END IF;

    WHEN 'window' THEN  -- p: burst, count_refused, 0 aligned | 1 anchored | 2 calendar, period | boundaries…
        IF p[3] = 2 THEN
            FOR i IN 4 .. array_length(p, 1) LOOP
                IF fresh_end IS NULL AND p[i] > now THEN fresh_end := p[i]; END IF;
                IF slack_end IS NULL AND p[i] > now + slack THEN slack_end := p[i]; END IF;
            END LOOP;
            IF slack_end IS NULL OR p[4] > now THEN RETURN; END IF;
        ELSE
            fresh_end := CASE WHEN p[3] = 1 THEN now + p[4] ELSE (div(now, p[4]) + 1) * p[4] END;
            slack_end := CASE WHEN p[3] = 1 THEN now + slack + p[4] ELSE (div(now + slack, p[4]) + 1) * p[4] END;
        END IF;
        window_end := fresh_end; used := 0;
        IF s IS NOT NULL AND now < s[1] THEN
            window_end := s[1]; used := s[2];
            IF window_end > fresh_end AND window_end > slack_end THEN window_end := fresh_end; capped := true;
            ELSIF p[3] <> 1 THEN window_end := greatest(window_end, fresh_end);
            END IF;
        END IF;
        admitted := cost <= p[1] - used;
        IF admitted THEN used := used + cost;
        ELSIF cost <= p[1] AND p[2] = 1 AND used < p[1] THEN used := p[1];
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := window_end || ':' || used;
        expires := window_end;

    WHEN 'sliding-window' THEN  -- p: burst, period
        period := p[2];
        window_end := (div(now, period) + 1) * period; current := 0; previous := 0;
        IF s IS NOT NULL AND now < s[1] + s[2] THEN
            IF s[1] > (div(now + slack, period) + 1) * period THEN current := s[3] + s[4]; capped := true;
            ELSIF s[2] <> period THEN  -- SlidingWindow._adopted
                IF now < s[1] THEN current := s[3] + s[4]; capped := s[1] > window_end;
                ELSIF s[1] + period > window_end THEN current := s[3];
                ELSIF s[1] + 2 * period > window_end THEN previous := s[3];
                END IF;
            ELSIF now < s[1] THEN window_end := s[1]; current := s[3]; previous := s[4];
            ELSE previous := s[3];
            END IF;
        END IF;
        view := least(period, window_end - now);
        admitted := previous * view + (current + cost) * period <= p[1] * period;
        IF admitted THEN current := current + cost; ELSIF NOT capped THEN RETURN; END IF;
        kept := window_end || ':' || period || ':' || current || ':' || previous;
        expires := window_end + period;

    WHEN 'sliding-log' THEN  -- p: burst, period
        live := '{}'; used := 0;
        FOR i IN 1 .. coalesce(array_length(s, 1), 0) BY 2 LOOP
            IF s[i] + p[2] > now THEN
                honest := CASE WHEN s[i] > now + slack THEN now ELSE s[i] END;
                IF honest <> s[i] THEN capped := true; END IF;
                IF array_length(live, 1) > 1 AND live[array_length(live, 1) - 1] >= honest THEN
                    RETURN;  -- a dishonest log out of order: the rule itself puts it right
                END IF;
                live := live || honest || s[i + 1];
                used := used + s[i + 1];
            END IF;
        END LOOP;
        admitted := used + cost <= p[1];
        IF admitted THEN
            i := array_length(live, 1);
            IF i > 1 AND live[i - 1] >= now THEN live[i] := live[i] + cost; ELSE live := live || now || cost; END IF;
        ELSIF NOT capped THEN RETURN;
        END IF;
        kept := array_to_string(live, ':');
        expires := live[array_length(live, 1) - 1] + p[2];

    WHEN 'growing-wait' THEN  -- p: burst, first, longest, forgiven_after
        made := 0; latest := now;
        IF s IS NOT NULL AND now < s[2] + p[4] THEN
            made := s[1]; latest := s[2];
            IF latest > now + slack THEN latest := now; capped := true; END IF;
        END IF;
        IF made < p[1] THEN used := p[1] - made;
        ELSE
            used := CASE WHEN now >= latest + CASE WHEN made - p[1] > 64 THEN p[3]
                ELSE least(p[3], p[2] * power(2::numeric, made - p[1])) END THEN 1 ELSE 0 END;
        END IF;
        admitted := cost <= used;
        IF admitted THEN made := made + cost; latest := greatest(now, latest); ELSIF NOT capped THEN RETURN; END IF;
        kept := trim_scale(made) || ':' || latest;
        expires := latest + p[4];

    ELSE RETURN;  -- leases: the rule itself
    END CASE;
END
$$;

-- Decide a bill, all or none: the translation of core.bill.settle. One call, one round trip.
--
--   allowed    NULL: not to be decided here; nothing was written, and the caller holds the keys and decides itself
--   states     the states before, from which the caller works out every outcome
CREATE OR REPLACE FUNCTION {schema}.advance(
    locks bigint[], keys bytea[], kinds text[], parameters text[], costs numeric[], shadows boolean[], write boolean,
    at bigint,
    OUT now bigint, OUT allowed boolean, OUT states text[]
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS
$$
DECLARE
    one record;
    oks boolean[] := '{}'; new_states text[] := '{}'; new_expires bigint[] := '{}';
BEGIN
    FOR i IN 1 .. array_length(locks, 1) LOOP
        PERFORM pg_advisory_xact_lock(locks[i]);
    END LOOP;
    now := coalesce(at, {schema}.clock());
    IF array_length(keys, 1) = 1 THEN
        states := ARRAY[(SELECT s.state FROM {schema}.state s WHERE s.key = keys[1])];
    ELSE
        SELECT array_agg(s.state ORDER BY k.place) INTO states
        FROM unnest(keys) WITH ORDINALITY AS k (key, place) LEFT JOIN {schema}.state s ON s.key = k.key;
    END IF;
    allowed := true;
    FOR i IN 1 .. array_length(keys, 1) LOOP
        SELECT * INTO one FROM {schema}.decide(kinds[i], string_to_array(parameters[i], ':')::numeric[], states[i], now, costs[i]);
        IF one.admitted IS NULL THEN allowed := NULL; RETURN; END IF;
        IF NOT one.admitted AND NOT shadows[i] THEN allowed := false; END IF;
        oks := oks || one.admitted;
        new_states := array_append(new_states, one.kept);
        new_expires := array_append(new_expires, least(one.expires, 9223372036854775807)::bigint);
    END LOOP;
    IF NOT write THEN RETURN; END IF;
    FOR i IN 1 .. array_length(keys, 1) LOOP
        IF new_states[i] IS NOT NULL AND (allowed OR NOT oks[i]) THEN
            INSERT INTO {schema}.state AS s (key, state, expires) VALUES (keys[i], new_states[i], new_expires[i])
            ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
        END IF;
    END LOOP;
END
$$;

INSERT INTO {schema}.version (number) VALUES ({number}) ON CONFLICT (one) DO UPDATE SET number = excluded.number;
