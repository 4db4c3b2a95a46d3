#include "server/session/source_bundle.h"

#include <protozero/pbf_writer.hpp>

#include <algorithm>

#include "base/file.h"
#include "server/session/side_files.h"
#include "wire/batch_read.h"
#include "wire/frame.h"

namespace flamewire::server {
namespace {

using wire::read::bytes;
using wire::read::get_text;
using wire::read::Malformed;
using wire::read::pbf_reader;

constexpr std::uint32_t files_tag = 1, name_tag = 1, path_tag = 2, text_tag = 3;

BundledSource read_source_message(pbf_reader in) {
    BundledSource source;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes(name_tag):
                source.name = get_text(in);
                break;
            case bytes(path_tag):
                source.path = get_text(in);
                break;
            case bytes(text_tag):
                source.text = get_text(in);
                break;
            default:
                in.skip();
        }
    }
    return source;
}

}  // namespace

std::string encode_source_bundle(std::span<const BundledSource> files) {
    std::string message;
    protozero::pbf_writer out(message);
    for (const BundledSource& source : files) {
        protozero::pbf_writer file(out, files_tag);
        file.add_bytes(name_tag, source.name);
        file.add_bytes(path_tag, source.path);
        file.add_bytes(text_tag, source.text);
    }
    return wire::compress(message);
}

Result<std::vector<BundledSource>> decode_source_bundle(Bytes packed) {
    const std::string message = TRY(wire::decompress(packed, max_source_bundle_bytes));
    try {
        std::vector<BundledSource> files;
        pbf_reader in(message);
        while (in.next()) {
            if (in.tag_and_type() == bytes(files_tag))
                wire::read::append(files, max_source_bundle_files) = read_source_message(in.get_message());
            else
                in.skip();
        }
        return files;
    } catch (const Malformed&) {
        return fail(ErrorCode::invalid, "the kept sources are more files than a session keeps");
    } catch (const protozero::exception& error) {
        return fail(ErrorCode::invalid, std::string("the kept sources are damaged: ") + error.what());
    }
}

Result<std::vector<BundledSource>> read_source_bundle(const std::string& stream_path) {
    const auto packed = read_file(side_file(stream_path, sources_name), max_source_bundle_bytes);
    if (!packed && packed.error().code == ErrorCode::not_found) return std::vector<BundledSource>{};
    if (!packed) return std::unexpected(packed.error());
    return decode_source_bundle(as_bytes_view(*packed));
}

std::optional<BundledSource> find_bundled_source(const std::string& stream_path, std::string_view name) {
    auto files = read_source_bundle(stream_path);
    if (!files) return std::nullopt;
    const auto at = std::ranges::find(*files, name, &BundledSource::name);
    return at == files->end() ? std::nullopt : std::optional(std::move(*at));
}

}  // namespace flamewire::server
