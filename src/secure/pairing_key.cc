#include "secure/pairing_key.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/fd.h"
#include "base/file.h"
#include "base/hex.h"

namespace flamewire::secure {
namespace {

constexpr std::size_t id_digits = 2 * PairingKey::id_bytes, secret_digits = 2 * PairingKey::secret_bytes;
constexpr std::size_t max_file_bytes = 4096;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Result<PairingKey> make_pairing_key() {
    std::array<char, PairingKey::id_bytes + PairingKey::secret_bytes> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        return fail_errno("no random numbers for a pairing key", errno);
    const std::string_view text(bytes.data(), bytes.size());
    return PairingKey{to_hex(text.substr(0, PairingKey::id_bytes)), std::string(text.substr(PairingKey::id_bytes))};
}

std::string pairing_code(const PairingKey& key) { return key.id + "-" + to_hex(key.secret); }

Result<PairingKey> parse_pairing_code(std::string_view code) {
    while (!code.empty() && is_space(code.front())) code.remove_prefix(1);
    while (!code.empty() && is_space(code.back())) code.remove_suffix(1);
    std::string lower(code);
    std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c; });
    const std::size_t dash = lower.find('-');
    if (lower.empty()) return fail(ErrorCode::invalid, "the pairing code is empty");
    if (lower.size() != id_digits + 1 + secret_digits || dash != id_digits)
        return fail(ErrorCode::invalid,
                    "a pairing code is 16 digits, a dash and 32 digits, as the other side printed it");
    auto id = from_hex(lower.substr(0, id_digits));
    auto secret = from_hex(lower.substr(id_digits + 1));
    if (!id || !secret) return fail(ErrorCode::invalid, "a pairing code has the digits 0-9 and a-f only");
    return PairingKey{lower.substr(0, id_digits), *std::move(secret)};
}

Result<PairingKey> read_pairing_file(const std::string& path) {
    const UniqueFd file = TRY(open_read(path));
    struct stat about{};
    if (::fstat(file.get(), &about) != 0) return fail_errno(path, errno);
    if (S_ISREG(about.st_mode) && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(ErrorCode::permission,
                    path + " can be read by other users, who could pair themselves: chmod 600 " + path);
    const std::string text = TRY(read_range(file.get(), 0, max_file_bytes));
    auto key = parse_pairing_code(text);
    if (!key) return fail(ErrorCode::invalid, path + ": " + key.error().message);
    return key;
}

}  // namespace flamewire::secure
