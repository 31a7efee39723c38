-- The translation of core.change.Change.applied: groups of changes one after the other, each group in one step.
-- KEYS: one per change. ARGV[1]: a double as in advance.lua; then two bytes per group, low one first: its changes. ARGV[2…]: a line per change, see codec.py.
-- One more ARGV, in tests only: the time instead of the server's. Returns "late now" or "now", then per group a digit per change (1: in
-- time), or "?" (the calendar's boundaries do not reach; nothing of the group was done).
local SLACK = 10000000 -- core.rule.CLOCK_SLACK_NS in microseconds
local call, unpack, byte = redis.call, struct.unpack, string.byte
local given = tonumber(ARGV[#KEYS + 2])
local now = given
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
--@include shared.lua

local awaited = unpack('<d', ARGV[1])
if awaited > 0 and now > awaited then
  return format('late %.0f', now)
end

local function keep(key, value, us)
  if not value or us <= now then
    call('DEL', key)
  elseif given then
    call('SET', key, value, 'PX', ceil((us - now) / 1000) + 3600000)
  else
    call('SET', key, value, 'PXAT', ceil(us / 1000))
  end
end

-- Each rule's `give_back`, `take` and `renew`: whether in time, whether there is something to store, what, until when.

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
        return less(ew, ef, given_back.cw, given_back.cf, d)
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
    for _, one in ipairs(open) do
      one.lw, one.lf = less(one.lw, one.lf, back_w, back_f, d)
      if one.lw < 0 then
        one.lw, one.lf = 0, 0
      end
    end
    changed = true
  end
  if held and not changed then
    return false
  end
  local left_w, left_f = less(w, f, now, 0, d)
  if left_w < 0 then
    left_w, left_f = 0, 0
  end
  if changed then
    if after(bw, bf, left_w, left_f) then
      bw, bf = left_w, left_f
    end
    local next_w, next_f = end_w + tw, end_f + tf
    if next_f >= d then
      next_w, next_f = next_w + 1, next_f - d
    end
    if (bw > 0 or bf > 0) and not after(next_w, next_f, w, f) then -- Ledger.after
      local old = given_back or {cw = 0, cf = 0, lw = huge, lf = 0, expires = '0000'}
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
      given_back = {at = said(now, 0), cw = sum_w, cf = sum_f, lw = max(0, floor_w), lf = floor_w < 0 and 0 or floor_f,
        expires = expires}
    end
    left_w, left_f = less(left_w, left_f, bw, bf, d)
    local over_w, over_f = less(left_w, left_f, depth_w, depth_f, d)
    if over_w < 0 then
      over_w, over_f = 0, 0
    end
    if after(dw, df, over_w, over_f) then
      dw, df = over_w, over_f
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

local function windowed(line, s, units, take)
  local mode, pw, pe, end_w, end_e, pos = unpack('<ddddd', line, 42)
  local changed = false
  local w, e, used
  if s then
    local found = fields(s)
    w, e = instant(found[1])
    used = tonumber(found[2])
    if not after(w, e, now, 0) then
      used = nil
    elseif units > 0 and w == end_w and e == end_e then
      used, changed = used > units and used - units or nil, true
    end
  end
  if take > 0 then
    if not used then
      w, e = window_end(now, mode, pw, pe, line, pos)
      if not w then
        return '?'
      end
    end
    used, changed = (used or 0) + take, true
  end
  if not changed then
    return true, false
  end
  if not used then
    return true, true, nil, 0
  end
  return true, true, format('%s:%.0f', said(w, e), used), up(w, e)
end

local function sliding(line, s, units, take)
  local pw, pe, end_w, end_e = unpack('<dddd', line, 42)
  local qw, qe = pw, pe
  if s then
    qw, qe = instant(fields(s)[2])
  end
  local changed = false
  local w, e, current, previous, capped = counters(s, qw, qe)
  if s and units > 0 and qw == pw and qe == pe and not capped then
    local before_w, before_e = less(w, e, pw, pe, 1000)
    if not after(w, e, end_w, end_e) then
      current, changed = max(0, current - units), true
    elseif before_w == end_w and before_e == end_e then
      previous, changed = max(0, previous - units), true
    end
  end
  if not changed and take == 0 then
    return true, false
  end
  local value, us = counted(w, e, qw, qe, current + take, previous)
  return true, true, value, us
end

local function log(line, s, units, take)
  local pw, pe, at_w, at_e = unpack('<dddd', line, 42)
  local all, changed = {}, take > 0
  local gone_w, gone_e = plus(at_w, at_e, pw, pe)
  local found = s and fields(s) or {}
  for i = 1, #found, 2 do
    local w, e = instant(found[i])
    local left = tonumber(found[i + 1])
    if units > 0 and w == at_w and e == at_e and after(gone_w, gone_e, now, 0) then
      left, changed = left - units, true
    end
    if left > 0 then
      all[#all + 1] = {w, e, left}
    end
  end
  if not changed then
    return true, false
  end
  if take > 0 then
    arrive(all, take)
  end
  local value, us = logged(all, pw, pe)
  return true, true, value, us
end

local function concurrent(line, s, units, take, renew)
  local pw, pe, end_w, end_e, pos = unpack('<dddd', line, 42)
  local token = sub(line, pos)
  local leases = live_leases(s)
  local changed = false
  for i, one in ipairs(leases) do
    if one[3] == token and (token ~= '0' or (not renew and one[1] == end_w and one[2] == end_e)) then
      if renew then
        one[1], one[2] = plus(now, 0, pw, pe)
      elseif units < one[4] then
        one[4] = one[4] - units
      else
        table.remove(leases, i)
      end
      changed = true
      break
    end
  end
  if not changed then
    return false
  end
  if renew then
    table.sort(leases, by_expiry)
  end
  local value, us = leased(leases)
  return true, true, value, us
end

local function growing(line, s, units, take)
  local gw, ge, at_w, at_e = unpack('<dddd', line, 42)
  local made, w, e = attempts(s, gw, ge)
  local changed = take > 0
  local gone_w, gone_e = plus(at_w, at_e, gw, ge)
  if units > 0 and made > 0 and not after(at_w, at_e, w, e) and after(gone_w, gone_e, now, 0) then
    made, changed = max(0, made - units), true
  end
  if not changed then
    return true, false
  end
  if take > 0 then
    if made == 0 or after(now, 0, w, e) then
      w, e = now, 0
    end
    made = made + take
  end
  if made == 0 then
    return true, true, nil, 0
  end
  local value, us = attempted(made, w, e, gw, ge)
  return true, true, value, us
end

local function block()
  return true, false
end

local rules = {
  [103] = gcra, [119] = windowed, [115] = sliding, [108] = log, [99] = concurrent, [98] = block, [97] = growing,
}

local function applied(line, s)
  local late_w, late_e, units, take, renew = unpack('<ddddd', line, 2)
  local kind = byte(line)
  if kind ~= 99 then
    if renew == 1 then
      return true, false
    end
    if late_w >= 0 and not after(late_w, late_e, now, 0) then
      return false
    end
  end
  return rules[kind](line, s, units, take, renew == 1)
end

local reply = {format('%.0f', now)}
local last = 0
for at = 9, #ARGV[1], 2 do
  local low, high = byte(ARGV[1], at, at + 1)
  local first = last + 1
  last = last + low + high * 256
  local said_of, writes = '', {}
  for i = first, last do
    local in_time, changed, value, us = applied(ARGV[i + 1], call('GET', KEYS[i]))
    if in_time == '?' then
      said_of = '?'
      break
    end
    said_of = said_of .. (in_time and '1' or '0')
    if changed then
      writes[#writes + 1] = {KEYS[i], value, us}
    end
  end
  if said_of ~= '?' then
    for _, one in ipairs(writes) do
      keep(one[1], one[2], one[3])
    end
  end
  reply[#reply + 1] = said_of
end
return table.concat(reply, ' ')
