// The pairing keys of a server: those that it gave to agents, and those of listening agents that it dials. One file of its
// own user (0600), one JSON object a line, read anew when somebody else changed it: keys come and go without a restart.
// All of it may be called from any thread.
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
    std::string address;       // of a listening agent, "host:port"; empty: it was given to an agent that dials
    std::int64_t made_ns = 0;  // wall clock
    std::int64_t used_ns = 0;  // last time; 0: never
    std::string used_from;     // then, host without port
    std::string owner;       // what was recorded by this id is its own, too: it came in the place of that key; or empty
    std::string instead_of;  // the key that goes once this one is used; or empty
    bool operator==(const KnownKey&) const = default;
};

class KeyRing {
public:
    static constexpr std::size_t max_keys = 4096;

    // invalid: the file is not ours to read, with its path and the line. A file that is not there is an empty ring.
    static Result<KeyRing> open(const std::string& path);
    KeyRing(KeyRing&& other) noexcept;

    // The code for the next agent: of a key that nobody has used yet, so asking again gives the same.
    Result<secure::PairingKey> unused();
    // One more, whatever there is.
    Result<secure::PairingKey> make();
    // One that takes the place of `id` once it is used, and goes on with what that recorded. not_found: there is no such
    // id, or it is a listening agent's, whose new code put() takes.
    Result<secure::PairingKey> renew(std::string_view id);
    // Of a listening agent; replaces the one that it had, and goes on with what that recorded. invalid: it is a code that
    // this server gave to an agent.
    Result<bool> put(const std::string& address, const secure::PairingKey& key);
    // False: there is no such id.
    Result<bool> withdraw(std::string_view id);

    // Of agents that dial.
    [[nodiscard]] std::optional<secure::PairingKey> find(std::string_view id) const;
    [[nodiscard]] std::optional<secure::PairingKey> of_address(std::string_view address) const;
    [[nodiscard]] bool has(std::string_view id) const;
    // The id by which the recordings of this key are kept: its own, or that of the first one in whose place it came.
    [[nodiscard]] std::string owner_of(std::string_view id) const;
    [[nodiscard]] std::vector<KnownKey> all() const;

    // An agent is connecting by it, so it is no unused one any more. Never waits; used() writes it down.
    void taken(std::string_view id);
    void used(std::string_view id, const std::string& from, std::int64_t now_ns);
    // Looks whether the file was changed; true when the keys are others now. Cheap to call often. A file that cannot be
    // read leaves the keys as they are.
    Result<bool> refresh();

private:
    struct Entry {
        KnownKey about;
        std::string secret;
    };
    using Entries = std::map<std::string, Entry, std::less<>>;  // by id
    static std::string owner_of(const KnownKey& key) { return key.owner.empty() ? key.id : key.owner; }

    // The file at one moment.
    struct Content {
        Entries entries;
        std::optional<FileStatus> status;  // as it was read or written; nothing: there is no file
    };

    static Entry fresh(const secure::PairingKey& key);
    static Result<bool> add(Entries& entries, Entry entry);  // busy: there are too many
    explicit KeyRing(std::string path) : path_(std::move(path)) {}
    static Result<Entries> parse(const std::string& path, std::string_view text);
    [[nodiscard]] Result<Content> load() const;
    [[nodiscard]] Content content() const;
    void show(Content content);
    template <class Change>
    Result<bool> change(Change change);

    const std::string path_;
    std::mutex writing_;        // held while the file is read or written; taken before mutex_
    mutable std::mutex mutex_;  // of what follows, never held for the disk
    Content content_;
    std::set<std::string, std::less<>> taken_;  // ids
};

}  // namespace flamewire::server
