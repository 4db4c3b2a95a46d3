#include "server/link/key_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;
// Minimum time between two writes of a key's last use, because agents reconnect often.
constexpr std::int64_t use_write_interval_ns = 60'000'000'000;

bool same(const std::optional<FileStatus>& one, const std::optional<FileStatus>& other) {
    if (one.has_value() != other.has_value()) return false;
    return !one || (one->size_bytes == other->size_bytes && one->changed_ns == other->changed_ns);
}

// root may change the keys of a server that runs as another user. That user must still be able to read them.
void chown_to_folder_owner(const std::string& path) {
    if (::geteuid() != 0) return;
    struct stat folder{};
    if (::stat(path.substr(0, path.rfind('/') + 1).c_str(), &folder) != 0 || folder.st_uid == 0) return;
    for (const std::string& file : {path, path + ".lock"}) (void)!::chown(file.c_str(), folder.st_uid, folder.st_gid);
}

}  // namespace

Result<KeyRing> KeyRing::open(const std::string& path) {
    KeyRing ring(path);
    ring.content_ = TRY(ring.load());
    return ring;
}

KeyRing::KeyRing(KeyRing&& other) noexcept
    : path_(other.path_), content_(std::move(other.content_)), reserved_(std::move(other.reserved_)) {}

Result<KeyRing::Entries> KeyRing::parse(const std::string& path, std::string_view text) {
    Entries entries;
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.empty()) continue;
        const auto wrong = [&](std::string_view why) {
            return fail(ErrorCode::invalid,
                        fmt::format("{} line {}: {}; remove the line, or move the file away", path, number, why));
        };
        const auto object = wire::parse_object(line);
        if (!object) return wrong("it is not a JSON object");
        Entry entry;
        entry.info.id = wire::text_member(*object, "id");
        const auto secret = from_hex(wire::text_member(*object, "secret"));
        const auto id = from_hex(entry.info.id);
        if (!id || id->size() != secure::PairingKey::id_bytes) return wrong("its id is invalid");
        if (!secret || secret->size() != secure::PairingKey::secret_bytes) return wrong("its secret is invalid");
        entry.secret = *secret;
        entry.info.address = wire::text_member(*object, "address");
        entry.info.made_ns = static_cast<std::int64_t>(wire::number_member(*object, "made_ns"));
        entry.info.used_ns = static_cast<std::int64_t>(wire::number_member(*object, "used_ns"));
        entry.info.used_from = wire::text_member(*object, "used_from");
        entry.info.owner = wire::text_member(*object, "owner");
        entry.info.instead_of = wire::text_member(*object, "instead_of");
        if (entries.size() >= max_keys) return wrong(fmt::format("there are more than {} keys", max_keys));
        entries.insert_or_assign(entry.info.id, std::move(entry));
    }
    return entries;
}

Result<KeyRing::Content> KeyRing::load() const {
    Content content{.entries = {}, .status = file_status(path_)};
    if (!content.status) return content;
    struct stat about{};
    if (::stat(path_.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(
            ErrorCode::permission,
            fmt::format("{} can be read by other users, who could pair themselves: chmod 600 {}", path_, path_));
    const std::string text = TRY(read_file(path_, max_file_bytes));
    content.entries = TRY(parse(path_, text));
    return content;
}

KeyRing::Content KeyRing::content() const {
    const std::lock_guard lock(mutex_);
    return content_;
}

void KeyRing::publish(Content content) {
    const std::lock_guard lock(mutex_);
    content_ = std::move(content);
}

// Reads the current file, changes it and writes it. Only one thread of one process does this at a time.
template <class Change>
Result<bool> KeyRing::change(Change change) {
    const std::lock_guard lock(file_mutex_);
    const UniqueFd gate(::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!gate) return fail_errno("cannot write " + path_ + ".lock", errno);
    if (::flock(gate.get(), LOCK_EX) != 0) return fail_errno("cannot lock " + path_ + ".lock", errno);
    Content next = content();
    if (!same(next.status, file_status(path_))) {
        next = TRY(load());
        publish(next);
    }
    const Result<bool> changed = change(next.entries);
    if (!changed || !*changed) return changed;
    std::string text;
    for (const auto& [id, entry] : next.entries) {
        JsonWriter json;
        json.object();
        json.member("id", id);
        json.member("secret", to_hex(entry.secret));
        json.member("address", entry.info.address);
        json.member("made_ns", static_cast<std::uint64_t>(entry.info.made_ns));
        json.member("used_ns", static_cast<std::uint64_t>(entry.info.used_ns));
        json.member("used_from", entry.info.used_from);
        if (!entry.info.owner.empty()) json.member("owner", entry.info.owner);
        if (!entry.info.instead_of.empty()) json.member("instead_of", entry.info.instead_of);
        json.end_object();
        text += json.take() + "\n";
    }
    TRY(replace_file(path_, as_bytes_view(text), Durable::yes));
    chown_to_folder_owner(path_);
    next.status = file_status(path_);
    publish(std::move(next));
    return true;
}

KeyRing::Entry KeyRing::fresh(const secure::PairingKey& key) {
    Entry entry;
    entry.info.id = key.id;
    entry.info.made_ns = realtime_ns();
    entry.secret = key.secret;
    return entry;
}

Result<bool> KeyRing::add(Entries& entries, Entry entry) {
    if (entries.size() >= max_keys)
        return fail(ErrorCode::busy, fmt::format("there are {} pairing keys: withdraw one first", entries.size()));
    std::string id = entry.info.id;
    entries.insert_or_assign(std::move(id), std::move(entry));
    return true;
}

Result<secure::PairingKey> KeyRing::unused() {
    secure::PairingKey key;
    const auto changed = change([&](Entries& entries) -> Result<bool> {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, entry] : entries) {
            const KnownKey& info = entry.info;
            if (info.used_ns != 0 || !info.address.empty() || !info.owner.empty() || reserved_.contains(id)) continue;
            key = {id, entry.secret};
            return false;
        }
        key = TRY(secure::make_pairing_key());
        return add(entries, fresh(key));
    });
    TRY(changed);
    return key;
}

Result<secure::PairingKey> KeyRing::make() {
    secure::PairingKey key = TRY(secure::make_pairing_key());
    TRY(change([&](Entries& entries) { return add(entries, fresh(key)); }));
    return key;
}

Result<secure::PairingKey> KeyRing::renew(std::string_view id) {
    secure::PairingKey key = TRY(secure::make_pairing_key());
    const auto changed = change([&](Entries& entries) -> Result<bool> {
        const auto known = entries.find(id);
        if (known == entries.end())
            return fail(ErrorCode::not_found, fmt::format("there is no pairing key {:.40}", id));
        if (!known->second.info.address.empty())
            return fail(ErrorCode::not_found, fmt::format("{} is a listening agent's key: change the code in its "
                                                          "--pair-file, and give the new one to --pair-agent {}",
                                                          id, known->second.info.address));
        Entry entry = fresh(key);
        entry.info.owner = owner_of(known->second.info);
        entry.info.instead_of = id;
        return add(entries, std::move(entry));
    });
    TRY(changed);
    return key;
}

Result<bool> KeyRing::put(const std::string& address, const secure::PairingKey& key) {
    return change([&](Entries& entries) -> Result<bool> {
        const auto known = entries.find(key.id);
        if (known != entries.end() && known->second.info.address == address && known->second.secret == key.secret)
            return false;
        if (known != entries.end() && known->second.info.address.empty())
            return fail(ErrorCode::invalid,
                        "this server made this code for an agent; use the code that the listening agent printed");
        Entry entry = fresh(key);
        entry.info.address = address;
        for (const auto& [id, before] : entries)
            if (before.info.address == address) entry.info.owner = owner_of(before.info);
        std::erase_if(entries, [&](const auto& before) { return before.second.info.address == address; });
        return add(entries, std::move(entry));
    });
}

Result<bool> KeyRing::withdraw(std::string_view id) {
    return change([&](Entries& entries) -> Result<bool> {
        const auto known = entries.find(id);
        if (known == entries.end()) return false;
        entries.erase(known);
        return true;
    });
}

std::optional<secure::PairingKey> KeyRing::find(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    const auto known = content_.entries.find(id);
    if (known == content_.entries.end() || !known->second.info.address.empty()) return {};
    return secure::PairingKey{known->first, known->second.secret};
}

std::optional<secure::PairingKey> KeyRing::of_address(std::string_view address) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : content_.entries)
        if (!address.empty() && entry.info.address == address) return secure::PairingKey{id, entry.secret};
    return {};
}

bool KeyRing::has(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    return content_.entries.contains(id);
}

std::string KeyRing::owner_of(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    const auto known = content_.entries.find(id);
    return known == content_.entries.end() ? std::string(id) : owner_of(known->second.info);
}

std::vector<KnownKey> KeyRing::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<KnownKey> keys;
    for (const auto& [id, entry] : content_.entries) keys.push_back(entry.info);
    std::ranges::sort(keys, {}, &KnownKey::made_ns);
    return keys;
}

void KeyRing::reserve(std::string_view id) {
    const std::lock_guard lock(mutex_);
    if (content_.entries.contains(id)) reserved_.emplace(id);
}

void KeyRing::used(std::string_view id, const std::string& from, std::int64_t now_ns) {
    // A full disk must not disconnect an agent. The next use writes it.
    (void)change([&](Entries& entries) -> Result<bool> {
        const auto known = entries.find(id);
        if (known == entries.end()) return false;
        KnownKey& info = known->second.info;
        if (info.instead_of.empty() && info.used_from == from && now_ns - info.used_ns < use_write_interval_ns)
            return false;
        entries.erase(std::exchange(info.instead_of, {}));
        info.used_from = from;
        info.used_ns = now_ns;
        return true;
    });
}

Result<bool> KeyRing::refresh() {
    const std::unique_lock lock(file_mutex_, std::try_to_lock);
    if (!lock || same(content().status, file_status(path_))) return false;  // a writer also publishes the new content
    publish(TRY(load()));
    return true;
}

}  // namespace flamewire::server
