-- Giving back to, taking from and undoing charges of GCRA, for change.lua, whose names it uses.

local function moved(old, bw, bf, end_w, end_f, w, f, d) -- Ledger.after
  old = old or {cw = 0, cf = 0, lw = huge, lf = 0, expires = '0000'}
  local sum_w, sum_f = old.cw + bw, old.cf + bf
  if sum_f >= d then
    sum_w, sum_f = sum_w + 1, sum_f - d
  end
  if sum_w > 4e15 then
    sum_w, sum_f = huge, 0
  end
  local floor_w, floor_f = old.lw, old.lf
  if after(floor_w, floor_f, end_w, end_f) then
    floor_w, floor_f = end_w, end_f
  end
  local ew, ee = instant(old.expires)
  local expires = after(ew, ee, up(w, f), 0) and old.expires or said(up(w, f), 0)
  return {at = said(now, 0), cw = sum_w, cf = sum_f, lw = max(0, floor_w), lf = floor_w < 0 and 0 or floor_f,
    expires = expires}
end

-- Takes b off what is owed, w:f - now, of which dw:df is debt: what is left, the debt, and the ledger, which remembers it
-- where charges came after the one that ends at e.
local function taken_off(w, f, bw, bf, ew, ef, dw, df, tw, tf, depth_w, depth_f, d, given_back)
  local left_w, left_f = less(w, f, now, 0, d)
  if left_w < 0 then
    left_w, left_f = 0, 0
  end
  if after(bw, bf, left_w, left_f) then
    bw, bf = left_w, left_f
  end
  local next_w, next_f = ew + tw, ef + tf
  if next_f >= d then
    next_w, next_f = next_w + 1, next_f - d
  end
  if (bw > 0 or bf > 0) and not after(next_w, next_f, w, f) then
    given_back = moved(given_back, bw, bf, ew, ef, w, f, d)
  end
  left_w, left_f = less(left_w, left_f, bw, bf, d)
  local over_w, over_f = less(left_w, left_f, depth_w, depth_f, d)
  if over_w < 0 then
    over_w, over_f = 0, 0
  end
  if after(dw, df, over_w, over_f) then
    dw, df = over_w, over_f
  end
  return left_w, left_f, dw, df, given_back
end

local function later_ones(open, from, vw, vf, d) -- what is known of arrivals after a charge, without its v
  for i = from, #open do
    local one = open[i]
    one.lw, one.lf = less(one.lw, one.lf, vw, vf, d)
    if one.lw < 0 then
      one.lw, one.lf = 0, 0
    end
  end
end

local function gcra(line, s, units, take)
  local d, depth_w, depth_f, tw, tf, back_w, back_f, full_w, full_f, least_w, least_f, most_w, most_f, at_w, at_e,
    taken_w, taken_f, longest_w, longest_f, pos = unpack('<ddddddddddddddddddd', line, 42)
  local token = sub(line, pos)
  local held = token ~= '0'
  local changed, w, f, dw, df, open, given_back = false, now, 0, 0, 0, {}, nil
  if s then
    w, f, dw, df, open, given_back = tat(s, d)
    open = unexpired(open)
  end

  local function modulo(x, y) -- of x:y and T; never negative
    local below = x < 0
    if below then
      x, y = less(0, 0, x, y, d)
    end
    local mw, mf = 0, 0
    if tw == 0 then
      local _, rest = share(fmod(x, tf), fmod(d, tf), tf)
      mf = fmod(rest + y, tf)
    else
      local k = max(0, floor((x + y / d) / (tw + tf / d)) - 1)
      for _ = 1, 4 do
        local whole, rest = share(k, tf, d)
        local kw, kf = less(x, y, k * tw + whole, rest, d)
        if kw < 0 then
          break
        end
        mw, mf, k = kw, kf, k + 1
      end
    end
    if below and (mw > 0 or mf > 0) then
      return less(tw, tf, mw, mf, d)
    end
    return mw, mf
  end

  local function charged() -- Gcra._charged, Ledger.ended: the TAT just after the charge, less what was given back since
    local moved_w, moved_f = 0, 0
    if given_back and given_back.cw ~= huge then
      moved_w, moved_f = given_back.cw, given_back.cf
    end
    local top_w, top_f = w + moved_w, f + moved_f
    if top_f >= d then
      top_w, top_f = top_w + 1, top_f - d
    end
    local mw, mf = modulo(less(top_w, top_f, least_w, least_f, d))
    local ew, ef = least_w + mw, least_f + mf
    if ef >= d then
      ew, ef = ew + 1, ef - d
    end
    if after(ew, ef, most_w, most_f) or not (after(least_w, least_f, now, 0) or not after(top_w, top_f, most_w, most_f)) then
      ew, ef = least_w, least_f
    end
    if given_back then
      local gw, ge = instant(given_back.at)
      if not after(at_w, at_e, gw, ge) and after(ew, ef, given_back.lw, given_back.lf) then
        local due_w, due_f = at_w + full_w, full_f -- what an unused key's TAT would be just after it
        if after(due_w, due_f, ew, ef) then
          due_w, due_f = ew, ef
        end
        ew, ef = less(ew, ef, given_back.cw, given_back.cf, d)
        if given_back.cw ~= huge and after(due_w, due_f, ew, ef) then
          return due_w, due_f
        end
      end
    end
    return ew, ef
  end

  local bw, bf = 0, 0
  local end_w, end_f = 0, 0
  if s and (held or units > 0) then
    end_w, end_f = charged()
  end
  if s and held then -- core.reserved.give_back
    local index
    for i, one in ipairs(open) do
      index = index or (one.token == token and i)
    end
    if index then
      local mine = open[index]
      if mine.cw ~= full_w or mine.cf ~= full_f then -- written under another quota
        if after(back_w, back_f, mine.cw, mine.cf) then
          back_w, back_f = mine.cw, mine.cf
        end
      end
      bw, bf = back_w, back_f
      for i = index, #open do
        local one = open[i]
        if after(bw, bf, one.lw, one.lf) then
          bw, bf = one.lw, one.lf
        end
        one.lw, one.lf = less(one.lw, one.lf, back_w, back_f, d)
        if one.lw < 0 then
          one.lw, one.lf = 0, 0
        end
      end
      if index > 1 then
        lowered(open[index - 1], mine.lw, mine.lf)
      end
      table.remove(open, index)
      changed = true
    end
  elseif s and units > 0 and not after(end_w, end_f, w, f) then
    bw, bf = less(end_w, end_f, now, 0, d)
    if after(bw, bf, full_w, full_f) then
      bw, bf = full_w, full_f
    elseif bw < 0 then
      bw, bf = 0, 0
    end
    if after(bw, bf, back_w, back_f) then
      bw, bf = back_w, back_f
    end
    later_ones(open, 1, back_w, back_f, d)
    changed = true
  end
  if held and not changed then
    return false
  end
  local left_w, left_f
  if changed then
    left_w, left_f, dw, df, given_back =
      taken_off(w, f, bw, bf, end_w, end_f, dw, df, tw, tf, depth_w, depth_f, d, given_back)
  else
    left_w, left_f = less(w, f, now, 0, d)
    if left_w < 0 then
      left_w, left_f = 0, 0
    end
  end
  if take > 0 then
    if #open > 0 then
      lowered(open[#open], left_w, left_f)
    end
    local wanted_w, wanted_f = left_w + taken_w, left_f + taken_f
    if wanted_f >= d then
      wanted_w, wanted_f = wanted_w + 1, wanted_f - d
    end
    if after(wanted_w, wanted_f, longest_w, longest_f) then
      wanted_w, wanted_f = longest_w, longest_f
    end
    if after(wanted_w, wanted_f, left_w, left_f) then
      left_w, left_f = wanted_w, wanted_f
    end
    dw, df = less(left_w, left_f, depth_w, depth_f, d)
    if dw < 0 then
      dw, df = 0, 0
    end
    changed = true
  end
  if not changed then
    return true, false
  end
  local value, us = written(now + left_w, left_f, d, dw, df, open, given_back)
  return true, true, value, us
end

-- Taking a charge off again that was made a moment ago, for a bill that failed elsewhere. Without it the key might have idled
-- since it owed no more than before: so much of it stays charged, whatever came in between. What it owed before the charge is
-- known less by what was taken off since: `known` is the ledger's sum at the charge.
local function undo(line, s)
  local d, depth_w, depth_f, tw, tf, cw, cf, base_w, base_f, at, known_w, known_f, until_w, until_e =
    unpack('<dddddddddddddd', line, 42)
  if not s then
    return true, false
  end
  local w, f, dw, df, open, given_back = tat(s, d)
  if given_back then
    if not after(until_w, until_e, now, 0) then -- the sum has begun anew since
      known_w, known_f = 0, 0
    end
    local since_w, since_f = less(given_back.cw, given_back.cf, known_w, known_f, d)
    if since_w >= 0 then
      base_w, base_f = less(base_w, base_f, since_w, since_f, d)
    end
  end
  local end_w, end_f = base_w + cw, base_f + cf
  if end_f >= d then
    end_w, end_f = end_w + 1, end_f - d
  end
  if after(at, 0, base_w, base_f) then
    base_w, base_f = at, 0
  end
  local idle_w, idle_f = less(now, 0, base_w, base_f, d)
  if idle_w < 0 then
    idle_w, idle_f = 0, 0
  end
  local bw, bf = less(cw, cf, idle_w, idle_f, d)
  if bw < 0 or w < now or after(end_w, end_f, w, f) then -- paid, or reset meanwhile
    return true, false
  end
  local left_w, left_f
  left_w, left_f, dw, df, given_back =
    taken_off(w, f, bw, bf, end_w, end_f, dw, df, tw, tf, depth_w, depth_f, d, given_back)
  open = unexpired(open)
  later_ones(open, 1, cw, cf, d)
  local value, us = written(now + left_w, left_f, d, dw, df, open, given_back)
  return true, true, value, us
end
