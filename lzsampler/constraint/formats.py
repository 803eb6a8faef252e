"""Regular expressions for the formats of JSON Schema. Every text that an expression matches has the format.

The patterns are in ECMAScript's syntax and match the whole value of a string. Sources: RFC 3339 (dates, times and, in
appendix A, durations), RFC 4122 (uuid), RFC 2673 and 4291 (addresses), RFC 1123 (hostname), RFC 5321 (email), RFC 3986
(uri) and RFC 6901 (json-pointer). If a pattern does not match some rare texts of a format, a comment names them.
"""

_YEAR = r"(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])"  # 0000 is left out: many parsers refuse it
_LEAP = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAYS = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])"
_DATE = f"(?:{_YEAR}-(?:{_DAYS})|{_LEAP}-02-29)"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"{_CLOCK}:[0-5]\d(?:\.\d{{1,9}})?(?:Z|[+-]{_CLOCK})"  # leap seconds are left out

_N = r"\d{1,9}"
_SECONDS = f"{_N}S"
_MINUTES = f"{_N}M(?:{_SECONDS})?"
_HOURS = f"{_N}H(?:{_MINUTES})?"
_CLOCKS = f"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAY = f"{_N}D"
_MONTH = f"{_N}M(?:{_DAY})?"
_DURATION = f"P(?:(?:{_N}Y(?:{_MONTH})?|{_MONTH}|{_DAY})(?:{_CLOCKS})?|{_CLOCKS}|{_N}W)"

_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_HEX = "[0-9A-Fa-f]"
_H16 = f"{_HEX}{{1,4}}"
_LAST32 = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(
    [
        f"(?:{_H16}:){{6}}{_LAST32}",
        f"::(?:{_H16}:){{5}}{_LAST32}",
        *(f"(?:(?:{_H16}:){{0,{n}}}{_H16})?::(?:{_H16}:){{{4 - n}}}{_LAST32}" for n in range(5)),
        f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
)
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

# Two consecutive hyphens are left out: only A-labels need them. Three long or ten short labels have at most 253 bytes.
_LONG, _SHORT = (f"[A-Za-z0-9](?:-?[A-Za-z0-9]){{0,{n}}}" for n in (31, 11))
_HOSTNAME = rf"(?:{_LONG}(?:\.{_LONG}){{0,2}}|{_SHORT}(?:\.{_SHORT}){{3,9}})"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]"
_EMAIL = rf"{_ATOM}(?:\.?{_ATOM}){{0,31}}@{_HOSTNAME}"  # quoted local parts and addresses in brackets are left out

_PCHAR = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%{_HEX}{{2}})"
_AUTHORITY = (
    rf"(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%{_HEX}{{2}})*@)?"
    rf"(?:\[(?:{_IPV6})\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%{_HEX}{{2}})*)(?::\d{{0,5}})?"
)
_PATH = f"//{_AUTHORITY}(?:/{_PCHAR}*)*|/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?|{_PCHAR}+(?:/{_PCHAR}*)*|"
_URI = rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:{_PATH})(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": _UUID,
    "uri": _URI,
    "json-pointer": "(?:/(?:[^/~]|~[01])*)*",
}
