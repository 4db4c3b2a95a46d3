// Reading other tools' files: each format is a file beside this one and an entry of formats(). Which one a file has is told
// by its content, never by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/recording_builder.h"
#include "symbol/types/module_identity.h"
#include "wire/batch.h"

namespace flamewire::profile {

// The bytes of a file.
class ImportSource {
public:
    virtual ~ImportSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Fills `into` with the bytes from `offset` on and returns how many; fewer only at the end.
    virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) = 0;
};

// One file on its way to one recording.
class ImportJob {
public:
    virtual ~ImportJob() = default;
    [[nodiscard]] virtual ImportSource& source() = 0;
    // What a person calls the file; the recording's target when the format has no word for one.
    [[nodiscard]] virtual const std::string& name() const = 0;
    // Call once, when the header is read and the content is known to be what it looked like. `about.target`: "" for
    // name(). `realtime_ns`: the wall clock at about.start_ns; 0: not known.
    virtual RecordingBuilder& begin(wire::Recording about, std::int64_t realtime_ns) = 0;
    // The file on this machine that has the code of a module, for who unwinds stacks of its own; empty: there is none.
    [[nodiscard]] virtual std::string module_file(const symbol::ModuleIdentity& module) = 0;
    // Where a file of the target would be below the folder that was given as its root; empty: none was given.
    [[nodiscard]] virtual std::string in_sysroot(std::string_view /*path*/) { return {}; }
    // Call it before that many bytes of memory are taken at once. too_large: the import may not have them, so end it.
    [[nodiscard]] virtual Result<bool> make_room(std::uint64_t /*bytes*/) { return true; }
    // How far the source has been read; seldom is often enough.
    virtual void progress(std::uint64_t read_bytes) = 0;
};

struct ImportFormat {
    std::string_view name;   // as in --format: "collapsed"
    std::string_view title;  // in a sentence, plural: "folded stacks (\"outer;inner count\")"
    // `beginning`: at least 64 KiB of the file, or all of it.
    bool (*recognises)(std::string_view beginning);
    // Reads the whole file. What it has and we do not show is noted in the builder. invalid: one sentence that says what
    // is wrong and where. A file that ends too early is imported as far as it is whole, with a note.
    Result<bool> (*import)(ImportJob& job);
};

// In the order in which they are tried.
std::span<const ImportFormat> import_formats();
const ImportFormat* recognise_import(std::string_view beginning);

// Calls `each` with one piece of the source after the other, and tells the job's progress.
Result<bool> read_through(ImportJob& job, const std::function<Result<bool>(std::string_view piece)>& each);

}  // namespace flamewire::profile
