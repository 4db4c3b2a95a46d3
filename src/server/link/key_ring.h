// The pairing keys of a server: those given to agents, and those of listening agents that it dials. They are in one
// file of the server's user (mode 0600), one JSON object per line. The file is read again when another process changes
// it, so no restart is needed. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "secure/pairing_key.h"

namespace flamewire::server {

// A key without its secret.
struct KnownKey {
    std::string id;
    std::string address;       // of a listening agent, "host:port"; empty: given to an agent that dials
    std::int64_t made_ns = 0;  // wall clock
    std::int64_t used_ns = 0;  // last use; 0: never
    std::string used_from;     // host of the last use, without port
    std::string owner;         // id of the key whose recordings this one continues; or empty
    std::string instead_of;    // the key that is removed once this one is used; or empty
    bool operator==(const KnownKey&) const = default;
};

class KeyRing {
public:
    static constexpr std::size_t max_keys = 4096;

    // invalid: the file is not readable as a key file; the message has its path and the line. A missing file is an
    // empty ring.
    static Result<KeyRing> open(const std::string& path);
    KeyRing(KeyRing&& other) noexcept;

    // The code for the next agent. It belongs to a key that is not in use yet, so repeated calls return the same code.
    Result<secure::PairingKey> unused();
    // Makes another key, whatever keys exist.
    Result<secure::PairingKey> make();
    // Makes a key that replaces `id` once it is used, and that continues its recordings. not_found: there is no such
    // id, or it belongs to a listening agent; use put() for its new code.
    Result<secure::PairingKey> renew(std::string_view id);
    // Stores the key of a listening agent. It replaces the agent's previous key and continues its recordings. invalid:
    // this server gave that code to an agent.
    Result<bool> put(const std::string& address, const secure::PairingKey& key);
    // False if there is no such id.
    Result<bool> withdraw(std::string_view id);

    // Keys of agents that dial.
    [[nodiscard]] std::optional<secure::PairingKey> find(std::string_view id) const;
    [[nodiscard]] std::optional<secure::PairingKey> of_address(std::string_view address) const;
    [[nodiscard]] bool has(std::string_view id) const;
    // The key id that owns the recordings of this key: its own, or that of the first key that it replaced.
    [[nodiscard]] std::string owner_of(std::string_view id) const;
    [[nodiscard]] std::vector<KnownKey> all() const;

    // An agent is connecting with this key, so unused() no longer returns it. Never blocks. used() writes it to the
    // file.
    void reserve(std::string_view id);
    void used(std::string_view id, const std::string& from, std::int64_t now_ns);
    // Reloads the file if it changed. True if the keys changed. Cheap to call often. If the file cannot be read, the
    // keys stay as they are.
    Result<bool> refresh();

private:
    struct Entry {
        KnownKey info;
        std::string secret;
    };
    using Entries = std::map<std::string, Entry, std::less<>>;  // by id
    static std::string owner_of(const KnownKey& key) { return key.owner.empty() ? key.id : key.owner; }

    // The file's content at one moment.
    struct Content {
        Entries entries;
        std::optional<FileStatus> status;  // as of the read or write; nothing: there is no file
    };

    static Entry fresh(const secure::PairingKey& key);
    static Result<bool> add(Entries& entries, Entry entry);  // busy: there are too many
    explicit KeyRing(std::string path) : path_(std::move(path)) {}
    static Result<Entries> parse(const std::string& path, std::string_view text);
    [[nodiscard]] Result<Content> load() const;
    [[nodiscard]] Content content() const;
    void publish(Content content);
    template <class Change>
    Result<bool> change(Change change);

    const std::string path_;
    std::mutex file_mutex_;     // held while the file is read or written; taken before mutex_
    mutable std::mutex mutex_;  // protects what follows; never held during disk access
    Content content_;
    std::set<std::string, std::less<>> reserved_;  // ids
};

// Which agents are accepted: those with one of these keys.
struct PairingPolicy {
    KeyRing& keys;
    bool insecure = false;  // also those without a key
};

}  // namespace flamewire::server
