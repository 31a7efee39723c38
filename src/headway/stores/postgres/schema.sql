-- What a headway store keeps in PostgreSQL: one table and the functions that are all a caller needs to reach it.
-- Applied as a whole, in one transaction, under an advisory lock; applying it again changes nothing but the functions.
-- schema.py fills in what stands in braces, and puts rules.sql, the arithmetic, in place with it.
--
-- What runs with the owner's rights looks in pg_temp last: where it is not named it comes first, with types of the caller's.

DO $$
BEGIN
    IF to_regnamespace('{schema}') IS NULL THEN
        CREATE SCHEMA {schema};  -- with IF NOT EXISTS, one who may not create schemas would fail where there is one
    ELSIF to_regclass('{schema}.version') IS NULL AND EXISTS (
        SELECT FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('{schema}')
        UNION ALL SELECT FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace('{schema}')
    ) THEN
        RAISE EXCEPTION 'schema {name} has other things in it; expected one that is empty, or that is not there'
            USING ERRCODE = '{foreign}';
    END IF;
END
$$;

CREATE TABLE IF NOT EXISTS {schema}.version (one boolean PRIMARY KEY DEFAULT true CHECK (one), number integer NOT NULL);

CREATE {unlogged} TABLE IF NOT EXISTS {schema}.state (
    key     bytea PRIMARY KEY,
    state   text   NOT NULL,  -- what Rule.dump gives, joined by ':'
    expires bigint NOT NULL   -- ns since 1970
) WITH (fillfactor = 70);     -- room on the page: an update then touches no index

-- Functions of an older version go: their arguments may have been others.
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = '{schema}'::regnamespace LOOP
        EXECUTE 'DROP FUNCTION ' || old;
    END LOOP;
END
$$;

CREATE FUNCTION {schema}.schema_version() RETURNS integer LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT number FROM {schema}.version $$;

-- The server's clock, ns since 1970 on a grid of microseconds; not frozen within a transaction.
CREATE FUNCTION {schema}.clock() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000 $$;

-- Take the turn of some keys until the transaction ends. The locks come sorted, so nobody waits in a circle; a key that
-- has no row yet is locked like any other.
CREATE FUNCTION {schema}.turn(locks bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS
$$
BEGIN
    FOR i IN 1 .. coalesce(array_length(locks, 1), 0) LOOP
        IF pg_advisory_xact_lock(locks[i]) IS NULL THEN END IF;
    END LOOP;
END
$$;

-- The states of keys, in their order; NULL where there is none.
CREATE FUNCTION {schema}.look(keys bytea[]) RETURNS text[] LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
    SELECT array_agg(s.state ORDER BY k.place)
    FROM unnest(keys) WITH ORDINALITY AS k (key, place) LEFT JOIN {schema}.state s ON s.key = k.key
$$;

-- Write the states of keys that are held; a NULL state forgets its key.
CREATE FUNCTION {schema}.put(keys bytea[], states text[], expires bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
BEGIN
    IF array_position(states, NULL) IS NOT NULL THEN
        DELETE FROM {schema}.state s USING unnest(keys, states) AS new (key, state)
        WHERE s.key = new.key AND new.state IS NULL;
    END IF;
    INSERT INTO {schema}.state AS s (key, state, expires)
    SELECT new.key, new.state, new.expires FROM unnest(keys, states, expires) AS new (key, state, expires)
    WHERE new.state IS NOT NULL
    ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
END
$$;

-- Decide one plain charge of GCRA, the quick way: the translation of core.gcra.Gcra.decide. One call, one round trip.
--
--   line         'cost:interval:depth:scale'
--   step, depth  the ns of the cost and of a full burst, where the scale is 1 and the cost no more than the burst
--   returns      the clock, '1' (admitted) or '0', and the state before, if any; a space between them
CREATE FUNCTION {schema}.hit(lock bigint, k bytea, line text, step bigint, depth bigint, at bigint DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    now bigint;
    before text;
    tat bigint;
    one record;
BEGIN
    IF pg_advisory_xact_lock(lock) IS NULL THEN END IF;
    now := coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000);
    UPDATE {schema}.state AS s  -- nearly always: a key that is known, and is admitted; of one that is idle its clock is told
    SET state = (greatest(s.expires, now) + step) || ':1', expires = greatest(s.expires, now) + step
    WHERE s.key = k AND s.expires <= now + depth - step AND s.state = s.expires || ':1'
    RETURNING s.expires - step INTO tat;
    IF FOUND THEN RETURN now || ' 1 ' || tat || ':1'; END IF;
    SELECT s.state, s.expires INTO before, tat FROM {schema}.state s WHERE s.key = k;
    IF step IS NOT NULL AND (tat IS NULL OR (tat - now <= depth AND before = tat || ':1')) THEN  -- no sum is beyond 2**63
        tat := coalesce(greatest(tat, now), now) + step;
        IF tat - now > depth THEN RETURN now || ' 0 ' || coalesce(before, ''); END IF;
        INSERT INTO {schema}.state AS s (key, state, expires) VALUES (k, tat || ':1', tat)
        ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
        RETURN now || ' 1 ' || coalesce(before, '');
    END IF;
    SELECT * INTO one FROM {schema}.decide(
        'gcra', (string_to_array(line, ':')::numeric[])[2:], string_to_array(before, ':')::numeric[], now,
        split_part(line, ':', 1)::numeric, 0, 0
    );
    IF one.kept IS NOT NULL THEN
        INSERT INTO {schema}.state AS s (key, state, expires)
        VALUES (k, one.kept, least(one.expires, 9223372036854775807)::bigint)
        ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
    END IF;
    RETURN now || CASE WHEN split_part(line, ':', 1)::numeric <= one.room THEN ' 1 ' ELSE ' 0 ' END || coalesce(before, '');
END
$$;

-- Decide a bill, all or none: the translation of core.bill.grant and core.bill.settle. One call, one round trip.
--
--   numbers    per key: cost, 1 for a shadow limit, 1 for a cost that may be lowered, the lease's token and ns (0: none),
--              then the parameters of its kind, joined by ':'
--   bends      whether some cost may be lowered
--   at         the time to decide by, in tests; NULL: the server's
--   past       where to go on looking for recovered keys; NULL: not now
--   returns    the clock; '1' (admitted), '0', or '?' (a calendar's boundaries do not reach around the clock; nothing was
--              written); the states before, from which the caller works out every outcome, with ',' between them; where to go
--              on next time, in hexadecimal, or '-'; a space between all
CREATE FUNCTION {schema}.advance(
    locks bigint[], keys bytea[], kinds text[], numbers text[], bends boolean, write boolean, at bigint, past bytea
) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    now bigint;
    allowed boolean := true;
    states text[];
    reached text := '-';
    n numeric[];
    s text;
    one record;
    fits numeric;
    cost numeric;
    start numeric;
    tat numeric;
    admitted boolean;
    written bytea[]; new_states text[]; new_expires bigint[]; admits boolean[];
BEGIN
    IF write THEN  -- who only looks does not wait
        FOR i IN 1 .. array_length(locks, 1) LOOP
            IF pg_advisory_xact_lock(locks[i]) IS NULL THEN END IF;
        END LOOP;
    END IF;
    now := coalesce(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000);
    SELECT array_agg(held.state ORDER BY k.place) INTO states
    FROM unnest(keys) WITH ORDINALITY AS k (key, place) LEFT JOIN {schema}.state AS held ON held.key = k.key;
    IF bends THEN
        FOR i IN 1 .. array_length(keys, 1) LOOP
            n := string_to_array(numbers[i], ':')::numeric[];
            IF n[3] = 1 AND n[2] = 0 THEN
                SELECT * INTO one
                FROM {schema}.decide(kinds[i], n[6:], string_to_array(states[i], ':')::numeric[], now, 0, 0, 0);
                IF one.room IS NULL THEN RETURN now || ' ? - -'; END IF;
                fits := least(fits, one.room);
            END IF;
        END LOOP;
    END IF;
    FOR i IN 1 .. array_length(keys, 1) LOOP
        n := string_to_array(numbers[i], ':')::numeric[];
        s := states[i];
        cost := CASE WHEN n[3] = 1 AND fits IS NOT NULL THEN least(n[1], greatest(fits, 1)) ELSE n[1] END;
        IF kinds[i] = 'gcra' AND n[4] = 0 AND cost > 0 THEN  -- core.gcra.Gcra.decide for the plain states that most are
            start := now * n[8];
            tat := coalesce(greatest(start, split_part(s, ':', 1)::numeric), start);
            IF tat - start <= n[7] AND (s IS NULL OR substr(s, strpos(s, ':') + 1) = n[8]::text) THEN
                tat := tat + cost * n[6];
                admitted := tat - start <= n[7];
                IF admitted THEN
                    written := written || keys[i];
                    new_states := new_states || (tat || ':' || n[8]);
                    new_expires := new_expires || least(div(tat + n[8] - 1, n[8]), 9223372036854775807)::bigint;
                    admits := admits || true;
                ELSIF n[2] = 0 THEN
                    allowed := false;
                END IF;
                CONTINUE;
            END IF;
        END IF;
        SELECT * INTO one FROM {schema}.decide(kinds[i], n[6:], string_to_array(s, ':')::numeric[], now, cost, n[4], n[5]);
        IF one.room IS NULL THEN RETURN now || ' ? - -'; END IF;
        admitted := cost <= one.room;
        IF NOT admitted AND n[2] = 0 THEN allowed := false; END IF;
        IF one.kept IS NOT NULL THEN
            written := written || keys[i];
            new_states := new_states || one.kept;
            new_expires := new_expires || least(one.expires, 9223372036854775807)::bigint;
            admits := admits || admitted;
        END IF;
    END LOOP;
    IF write AND written IS NOT NULL AND (allowed OR false = ANY (admits)) THEN
        INSERT INTO {schema}.state (key, state, expires)
        SELECT new.key, new.state, new.expires
        FROM unnest(written, new_states, new_expires, admits) AS new (key, state, expires, admitted)
        WHERE allowed OR NOT new.admitted
        ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires;
    END IF;
    IF write AND past IS NOT NULL THEN reached := encode({schema}.clean(past, 1024, now), 'hex'); END IF;
    RETURN now || CASE WHEN allowed THEN ' 1 ' ELSE ' 0 ' END || array_to_string(states, ',', '') || ' ' || reached;
END
$$;

-- Change charges that were made, one after the other, in one step: the translation of core.change.Change.applied. One
-- call, one round trip.
--
--   numbers    per change: units to give back, units to take, 1 to renew, when the lease ends (-1: there is none), 1 where
--              a reservation has to be found (2 where a charge is taken off that nobody was told of), then the receipt's
--              cost, token, time and reset after, then the parameters of its kind, joined by ':'
--   in_time    NULL: a calendar's boundaries do not reach around "now"; nothing was written
CREATE FUNCTION {schema}.change(
    locks bigint[], keys bytea[], kinds text[], numbers text[], at bigint, OUT now bigint, OUT in_time boolean[]
) LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    one record;
    states text[];
    place integer;
    written bytea[] := '{}'; new_states text[] := '{}'; new_expires bigint[] := '{}';
BEGIN
    PERFORM {schema}.turn(locks);
    now := coalesce(at, {schema}.clock());
    states := {schema}.look(keys);
    in_time := '{}';
    FOR i IN 1 .. array_length(keys, 1) LOOP
        place := array_position(written, keys[i]);
        SELECT * INTO one FROM {schema}.apply(
            kinds[i], string_to_array(numbers[i], ':')::numeric[],
            string_to_array(CASE WHEN place IS NULL THEN states[i] ELSE new_states[place] END, ':')::numeric[], now
        );
        IF one.in_time IS NULL THEN in_time := NULL; RETURN; END IF;
        in_time := in_time || one.in_time;
        IF one.changed THEN
            place := coalesce(place, coalesce(array_length(written, 1), 0) + 1);
            written[place] := keys[i];
            new_states[place] := one.kept;
            new_expires[place] := coalesce(least(one.expires, 9223372036854775807), 0)::bigint;
        END IF;
    END LOOP;
    PERFORM {schema}.put(written, new_states, new_expires);
END
$$;

-- Forget keys, in one step.
CREATE FUNCTION {schema}.reset(locks bigint[], keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
BEGIN
    PERFORM {schema}.turn(locks);
    DELETE FROM {schema}.state s WHERE s.key = ANY (keys);
END
$$;

-- Hold keys until the transaction ends, and read them.
CREATE FUNCTION {schema}.hold(locks bigint[], keys bytea[], at bigint, OUT now bigint, OUT states text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
BEGIN
    PERFORM {schema}.turn(locks);
    now := coalesce(at, {schema}.clock());
    states := {schema}.look(keys);
END
$$;

-- Look at up to "most" keys after "past" and forget those that have recovered, but leave alone what somebody is at; the key
-- to go on from.
CREATE FUNCTION {schema}.clean(past bytea, most integer, now bigint) RETURNS bytea
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    seen bytea[];
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

-- The keys between two others, a page at a time.
CREATE FUNCTION {schema}.page(low bytea, high bytea, most integer) RETURNS SETOF bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT s.key FROM {schema}.state s WHERE s.key > low AND s.key < high ORDER BY s.key LIMIT most $$;
