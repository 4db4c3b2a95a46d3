"""Rows of unwind tables, from the output of llvm-dwarfdump and of our dump_rows, in one format: (start, end, cfa, flags, {register: rule}).

cfa and rules are text: "r7+8", "c-16" (stored at CFA - 16), "v+8" (is CFA + 8), "u", "r3", "at:EXPRESSION", "is:EXPRESSION".
"""
import re
import subprocess

X86_64 = {name: number for number, name in enumerate(
    "RAX RDX RCX RBX RSI RDI RBP RSP R8 R9 R10 R11 R12 R13 R14 R15 RIP".split())}
X86 = {name: number for number, name in enumerate("EAX ECX EDX EBX ESP EBP ESI EDI EIP".split())}
AARCH64 = {f"W{number}": number for number in range(31)} | {"WSP": 31}
ARM = {f"R{number}": number for number in range(13)} | {"SP": 13, "LR": 14, "PC": 15}
NUMBERS = {"x86-64": X86_64, "i386": X86, "aarch64": AARCH64, "arm": ARM}
TRACKED = 33  # registers with larger numbers have no rules in our rows
SIGNED = 34   # aarch64's pseudo register for "the return address is signed"


def number_of(name, names):
    return int(name[3:]) if name.startswith("reg") else names[name]


def location(text, names):
    """'RSP+8' as 'r7+8'."""
    match = re.fullmatch(r"(\w+?)([+-]\d+)?", text)
    return f"r{number_of(match[1], names)}{int(match[2] or 0):+d}"


def rule_of(text, names):
    if match := re.fullmatch(r"\[CFA([+-]\d+)?\]", text):
        return f"c{int(match[1] or 0):+d}"
    if match := re.fullmatch(r"CFA([+-]\d+)?", text):
        return f"v{int(match[1] or 0):+d}"
    if text.startswith("[DW_OP"):
        return "at:" + text[1:-1]
    if text.startswith("DW_OP"):
        return "is:" + text
    if text == "undefined":
        return "u"
    if text == "same":
        return None
    return f"r{number_of(text, names)}"


def split_rules(text):
    """Splits 'RBX=[CFA-8], R8=[DW_OP_a, DW_OP_b]' at the commas between rules."""
    return [part for part in re.split(r", (?=(?:\w+)=)", text) if part]


class Function:
    """One FDE: its range and its rows."""

    def __init__(self, start, end, signal):
        self.start, self.end, self.signal, self.rows = start, end, signal, []
        self.location, self.signed, self.remembered, self.signs = start, False, [], {}

    def instruction(self, text):
        """Tracks where return addresses are signed: llvm-dwarfdump 16 never resets the sign."""
        if match := re.match(r"DW_CFA_advance_loc\d?: (\d+)", text):
            self.signs[self.location] = self.signed
            self.location += int(match[1])
        elif text.startswith("DW_CFA_remember_state"):
            self.remembered.append(self.signed)
        elif text.startswith("DW_CFA_restore_state"):
            self.signed = self.remembered.pop()
        elif text.startswith("DW_CFA_AARCH64_negate_ra_state"):
            self.signed = not self.signed
        self.signs[self.location] = self.signed

    def finished(self):
        """Rows with their ends. If several have one address, the last one counts."""
        rows = [row for row, following in zip(self.rows, self.rows[1:] + [None])
                if following is None or following[0] != row[0]]
        ends = [row[0] for row in rows[1:]] + [self.end]
        for (start, cfa, rules), end in zip(rows, ends):
            if start == self.end:
                continue  # an instruction after the last byte creates an empty row
            flags = (("signal",) if self.signal else ()) + (("signed",) if self.signs.get(start) else ())
            yield start, end, cfa, flags, rules


def functions_of_dwarfdump(tool, path, section):
    """The functions of '.eh_frame' or '.debug_frame' with rows, in the section's order."""
    option = {".eh_frame": "--eh-frame", ".debug_frame": "--debug-frame"}[section]
    text = subprocess.run([tool, option, path], capture_output=True, text=True, check=True).stdout
    names = NUMBERS[re.search(r"file format elf\d\d-(?:little)?(?:big)?([\w-]+)", text)[1].replace("aarch64_be", "aarch64")]
    functions, signals, current, wanted, entry = [], {}, None, False, None
    for line in text.splitlines():
        if line.endswith(" contents:"):
            wanted, current = line.startswith(section + " "), None
        elif not wanted:
            continue
        elif match := re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE", line):
            entry, current = int(match[1], 16), None
        elif match := re.match(r'  Augmentation: +"(.*)"', line):
            signals[entry] = "S" in match[1]
        elif match := re.match(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.\.([0-9a-f]+)", line):
            current = Function(int(match[2], 16), int(match[3], 16), signals[int(match[1], 16)])
            functions.append(current)
        elif current is not None and (match := re.match(r"  (DW_CFA_.*)$", line)):
            current.instruction(match[1])
        elif current is not None and (match := re.match(r"  0x([0-9a-f]+): CFA=(.*)$", line)):
            expression = match[2].startswith("DW_OP")
            cfa, _, rules = match[2].partition(": ")
            named = {}
            for part in split_rules(rules):
                name, _, rule = part.partition("=")
                number = number_of(name, names)
                if number < TRACKED and number != SIGNED and rule_of(rule, names) is not None:
                    named[number] = rule_of(rule, names)
            current.rows.append((int(match[1], 16), "is:" + cfa if expression else location(cfa, names), named))
    return functions, names


OPERATIONS = {0x06: "deref", 0x12: "dup", 0x13: "drop", 0x16: "swap", 0x19: "abs", 0x1a: "and", 0x1b: "div", 0x1c: "minus", 0x1d: "mod",
              0x1e: "mul", 0x1f: "neg", 0x20: "not", 0x21: "or", 0x22: "plus", 0x24: "shl", 0x25: "shr", 0x26: "shra",
              0x27: "xor", 0x29: "eq", 0x2a: "ge", 0x2b: "gt", 0x2c: "le", 0x2d: "lt", 0x2e: "ne", 0x96: "nop"}


def leb(data, at, signed):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte & 0x80 == 0:
            return (value - (1 << shift) if signed and byte & 0x40 else value), at


def expression_text(hexadecimal, names):
    """The bytes of an expression in llvm-dwarfdump's format, for the operations that compilers use."""
    data, at, words, name_of = bytes.fromhex(hexadecimal), 0, [], {number: name for name, number in names.items()}
    while at < len(data):
        code, at = data[at], at + 1
        if code in OPERATIONS:
            words.append("DW_OP_" + OPERATIONS[code])
        elif 0x30 <= code < 0x50:
            words.append(f"DW_OP_lit{code - 0x30}")
        elif 0x70 <= code < 0x90:
            offset, at = leb(data, at, True)
            words.append(f"DW_OP_breg{code - 0x70} {name_of[code - 0x70]}{offset:+d}")
        elif code == 0x23:
            offset, at = leb(data, at, False)
            words.append(f"DW_OP_plus_uconst 0x{offset:x}")
        else:
            words.append(f"operation 0x{code:x}")
    return ", ".join(words)


def in_words(rule, names):
    kind, colon, expression = rule.partition(":")
    return f"{kind}:{expression_text(expression, names)}" if colon else rule


def our_rows(dump, path, addresses, names):
    """{address: row or None} from dump_rows."""
    text = subprocess.run([dump, path], input="".join(f"{address:x}\n" for address in addresses), capture_output=True, text=True,
                          check=True).stdout
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if words[1] == "none":
            rows[int(words[0], 16)] = None
            continue
        flags = tuple(word for word in words[4:] if "=" not in word)
        rules = {int(word[1:word.index("=")]): in_words(word[word.index("=") + 1:], names) for word in words[4:] if "=" in word}
        rows[int(words[0], 16)] = (int(words[1], 16), int(words[2], 16), in_words(words[3], names), flags, rules)
    return rows
