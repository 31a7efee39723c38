-- GCRA's states, for advance.lua and change.lua; included by shared.lua, whose names it uses.
-- core.gcra and core.reserved: a TAT is "w"; or 24 bytes (w, f, d); or, with debt or a ledger, "r" w:f:d:debt w:debt f, for
-- what was given back "g" at:ticks w:ticks f:floor w:floor f:expires, and for each open reservation
-- token:charged w:charged f:low w:low f:expires. "-" stands for NOTHING_YET.

local function tat(s, d) -- w, f, debt w, debt f, reservations, given back (another quota's fractions are rounded up); raises an error where it is none
  if #s < 24 then
    assert(string.find(s, '^%d+$'))
    return s + 0, 0, 0, 0, {}
  end
  if #s == 24 then
    local w, f, other = struct.unpack('<ddd', s)
    assert(w >= 0 and w < 9007199254740992 and f >= 0 and f < other)
    if other ~= d and f > 0 then
      return w + 1, 0, 0, 0, {}
    end
    return w, f, 0, 0, {}
  end
  local found = fields(sub(s, 2), 5, 6)
  local w, f, dw, df = tonumber(found[1]), tonumber(found[2]), tonumber(found[4]), tonumber(found[5])
  local foreign = tonumber(found[3]) ~= d
  if foreign then
    w, f, dw, df = up(w, f), 0, up(dw, df), 0
  end
  local function part(i, higher)
    local whole, rest = found[i] == '-' and huge or tonumber(found[i]), tonumber(found[i + 1])
    if foreign then
      return higher and up(whole, rest) or whole, 0
    end
    return whole, rest
  end
  local open, given = {}, nil
  for i = 6, #found, 6 do
    local token, expires = found[i], found[i + 5]
    local ew, ee = instant(expires)
    local cw, cf = part(i + 1, sub(token, 1, 1) == 'g')
    local lw, lf = part(i + 3)
    if sub(token, 1, 1) ~= 'g' then
      open[#open + 1] = {token = token, cw = cw, cf = cf, lw = lw, lf = lf, expires = expires}
    elseif after(ew, ee, now, 0) then
      given = {at = sub(token, 2), cw = cw, cf = cf, lw = lw, lf = lf, expires = expires}
    end
  end
  return w, f, dw, df, open, given
end

local function record(name, one)
  local charged = one.cw == huge and '-' or format('%.0f', one.cw)
  local low = one.lw == huge and '-' or format('%.0f', one.lw)
  return format('%s:%s:%.0f:%s:%.0f:%s', name, charged, one.cf, low, one.lf, one.expires)
end

local function written(w, f, d, dw, df, open, given) -- core.gcra.Gcra._state: what to store, and until when
  if #open == 0 and not given and dw == 0 and df == 0 then
    return f == 0 and w or pack('<ddd', w, f, d), up(w, f)
  end
  local parts, until_us = {format('r%020.0f:%.0f:%.0f:%.0f:%.0f', w, f, d, dw, df)}, up(w, f)
  if given then
    parts[2] = record('g' .. given.at, given)
    until_us = max(until_us, up(instant(given.expires)))
  end
  for _, one in ipairs(open) do
    parts[#parts + 1] = record(one.token, one)
    until_us = max(until_us, up(instant(one.expires)))
  end
  return table.concat(parts, ':'), until_us
end

local function owes(w, f, depth_w, depth_f, dw, df, d) -- core.gcra.Gcra._owed
  w = w - now
  local most = depth_w + SLACK
  if after(w, f, most, depth_f) then
    local hw, hf = depth_w + dw, depth_f + df
    if hf >= d then
      hw, hf = hw + 1, hf - d
    end
    if after(w, f, hw + SLACK, hf) then
      return hw, hf, true
    end
  end
  if w < 0 then
    return 0, 0, false
  end
  return w, f, false
end

local function less(w, f, vw, vf, d) -- w:f - v:g
  f = f - vf
  if f < 0 then
    return w - vw - 1, f + d
  end
  return w - vw, f
end

local function lowered(one, w, f) -- the lesser of what is known and w:f
  if after(one.lw, one.lf, w, f) then
    one.lw, one.lf = w, f
  end
end

local function unexpired(open) -- core.reserved.unexpired
  local kept = {}
  for _, one in ipairs(open) do
    local w, e = instant(one.expires)
    if after(w, e, now, 0) then
      kept[#kept + 1] = one
    elseif #kept > 0 then
      lowered(kept[#kept], one.lw, one.lf)
    end
  end
  return kept
end
