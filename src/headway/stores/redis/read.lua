-- Reading a key, for advance.lua and change.lua, whose names it uses.

local function read(key) -- nil or false: nothing there; a space, which is in no state: it is no string
  local s = redis.pcall('GET', key)
  if type(s) ~= 'table' then
    return s
  elseif not string.find(s.err, 'WRONGTYPE', 1, true) then
    call('GET', key) -- raises it
  end
  return ' '
end
