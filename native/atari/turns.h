// One turn of an Atari game: an action for several frames, and the picture that it leads to.
//
// The emulator is ale-py's, a Python object that is called for every frame; what is done between
// these calls would take Python as long as the picture does.
#pragma once

#include "screen.h"

namespace shoal {

class AtariTurns {
 public:
  /// `emulator` is an ALEInterface, `screens` an array of three screens, `painter` a ScreenPainter
  /// or None. `merges`: whether a picture is of two screens. `sticky` is None, or says what is done
  /// in a frame instead of an action: a function of the action and its strength.
  AtariTurns(nb::handle emulator, nb::handle screens, nb::handle painter, nb::handle sticky,
             int frame_skip, bool merges, bool ends_with_life);

  /// Takes an action until all frames are done, the game is over, a life that it ends with is lost,
  /// or `frames_left` are over. Paints the picture, unless it was cut short.
  ///
  /// Returns (reward, lives, frames, is over, life is lost, is painted, is captured): the last says
  /// of a turn that was cut short whether the first of the two screens was seen.
  nb::object play(nb::handle action, nb::handle strength, long lives, int64_t frames_left,
                  nb::handle picture);

  /// The newest screen, the one before it that is merged with it, and the one that the next is
  /// written to; arrays that belong to the turns.
  nb::tuple screens() const;

 private:
  Ref act_, lives_, is_over_, get_screen_, sticky_, painter_owner_;
  ScreenPainter* painter_;
  int frame_skip_;
  bool merges_, ends_with_life_;
  Ref newest_, before_, next_;
};

}  // namespace shoal
